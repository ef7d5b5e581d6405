"""A folder with a problem for planning, for the tests of the commands that plan."""

import pathlib
import tempfile
import unittest

PROBLEM = "id,lower,upper,size\na,0,10,100\nb,0,5,60\nc,5,10,50\n"


class ProblemFiles(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.problem = self.write("p.csv", PROBLEM)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)
