"""./dev takes any Python that the wheels support, and says what is missing otherwise."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from tests.quality import suite

DEV = suite.ROOT / "dev"


class BasePython(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def interpreter(self, name, answer):
        """A program that answers the question for its version so; None: it cannot."""
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + ("exit 1\n" if answer is None else f"echo {answer}\n"))
        path.chmod(0o755)
        return path

    def choose(self, *candidates):
        """What base_python does if these are all interpreters there are."""
        script = (f". '{DEV}' help >/dev/null\n"
                  "python_candidates() { printf '%s\\n' \"${candidates[@]}\"; }\n"
                  "candidates=(\"$@\")\nbase_python\n")
        return subprocess.run(["bash", "-c", script, "bash", *map(str, candidates)],
                              capture_output=True, text=True, check=False,
                              env={**os.environ, "HOME": str(self.folder)})

    def test_takes_the_first_that_will_do(self):
        wanted = self.interpreter("python3.13", "3.13")
        done = self.choose(self.folder / "none", self.interpreter("python3", "3.10"),
                           self.interpreter("python3.11", None), wanted,
                           self.interpreter("python3.12", "3.12"))
        self.assertEqual((done.returncode, done.stdout.strip()), (0, str(wanted)), done.stderr)

    def test_names_what_it_found_and_what_to_install(self):
        old = self.interpreter("python3", "3.9")
        bare = self.interpreter("python3.12", None)
        done = self.choose(old, bare)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        for words in ("3.11 3.12 3.13", f"{old} (3.9)", f"{bare} (without venv)",
                      "apt-get install python3.11 python3.11-venv"):
            self.assertIn(words, done.stderr)

    def test_the_interpreter_of_this_test_will_do(self):
        done = self.choose(sys.executable)
        self.assertEqual(done.stdout.strip(), sys.executable, done.stderr)


if __name__ == "__main__":
    unittest.main()
