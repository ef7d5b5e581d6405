"""Every slow tool shows progress in a terminal, and nowhere else."""

import subprocess
import tempfile
import unittest

from tests.harmony import profile_files
from tests.plan import problem_files
from tests.swap import trace_files
from tests.terminal import terminal
from tests.wheel import installation

CLEAR = "\r\x1b[K"


class Progress(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = f"{self.folder}/{name}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def check(self, shown, *command):
        quiet = subprocess.run(command, capture_output=True, text=True, check=True)
        self.assertEqual(quiet.stderr, "")
        watched = terminal.Program(command, of=("stderr",))
        out = watched.end()
        self.assertEqual(watched.process.returncode, 0, watched.seen)
        self.assertEqual(len(out.splitlines()), len(quiet.stdout.splitlines()))
        self.assertIn(CLEAR + shown, watched.seen)
        self.assertTrue(watched.seen.endswith(CLEAR), "the line is left behind: " + watched.seen)
        return watched.seen

    def test_replay_has_a_bar(self):
        trace = self.write("small.trace", "A 0 4000000\nA 1 3000000\nF 0\nF 1\n")
        seen = self.check("small: thimble  [----", "tests/bench/replay", "--json", "--policy",
                          "thimble", "--policy", "cnmem", trace)
        self.assertIn("small: cnmem  [######--------------]  1 of 3", seen)

    def test_commands_of_the_package(self):
        site = installation.Environment(self.addCleanup, frameworks=False).install()
        thimble = str(site.folder / "bin" / "thimble")
        problem = self.write("p.csv", problem_files.PROBLEM)
        self.check(f"{problem}  [--------------------]  0 of 1 s", thimble, "plan", problem,
                   "--seconds", "1")
        trace = self.write("t.trace", trace_files.TRACE)
        self.check(trace, thimble, "swap", trace)
        self.check(f"{trace} 28500000", thimble, "swap", "--curve", trace)
        profile = self.write("profile.csv", profile_files.profile(layers=4))
        seen = self.check(profile, thimble, "harmony", profile, "--gpus", "2", "--memory", "2GiB",
                          "--batch", "8", "--seconds", "1")
        self.assertRegex(seen, r"  \d+ s")


if __name__ == "__main__":
    unittest.main()
