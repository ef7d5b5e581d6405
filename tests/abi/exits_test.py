"""P6: a process that uses Thimble ends, in every way, as it would without Thimble."""

import pathlib
import signal
import subprocess
import unittest

CHILD = pathlib.Path("tests/abi/exit_child")
# What the way itself brings about; all others end with 0 and without a word.
STATUS = {
    "abort": -signal.SIGABRT,
    "exception": -signal.SIGABRT,
    "sigterm": -signal.SIGTERM,
}
REPEATS = 3  # threads are somewhere else each time


def run(way):
    return subprocess.run([str(CHILD), way], capture_output=True, text=True, timeout=20)


class Exits(unittest.TestCase):

    def test_every_way_to_end(self):
        ways = run("list").stdout.split()
        self.assertGreaterEqual(len(ways), 20)
        for way in ways:
            for _ in range(REPEATS):
                with self.subTest(way=way):
                    ended = run(way)
                    self.assertEqual(ended.stdout, "ready\n", ended.stderr)
                    self.assertEqual(ended.returncode, STATUS.get(way, 0), ended.stderr)
                    if way != "exception":  # of which the C++ library tells
                        self.assertEqual(ended.stderr, "")


if __name__ == "__main__":
    unittest.main()
