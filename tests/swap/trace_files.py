"""A folder with an access trace, for the tests of the commands that plan swapping."""

import pathlib
import tempfile
import unittest

# Five ops of 10 ms. Block 1 is idle while block 2 makes the peak.
TRACE = """\
A 1 20000000
S
O a 0.01 r:1 w:
O b 0.01 r: w:
A 2 10000000
O c 0.01 r: w:2
F 2
O d 0.01 r: w:
O e 0.01 r:1 w:
S
"""


class TraceFiles(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.trace = self.write("t.trace", TRACE)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def expected(self):
        """The line for the trace, without its policy and seconds."""
        return {"file": self.trace, "peak_before": 30000000, "peak_after": 20000000,
                "ratio": 0.666667, "slowdown": 0, "bytes_out": 20000000, "bytes_in": 20000000,
                "swaps": 1, "bus_out": 24000000000, "bus_in": 24000000000}
