"""When programs and commands are killed, their figures are shown and nothing is left behind."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import textwrap
import time
import unittest

from tests.wheel import installation
from tests.wheel.installation import PROGRAM

CONF = "device:cpu,memory:64MiB"
# Takes 22 MiB and ends without cleaning up.
KILLED = PROGRAM + textwrap.dedent("""
    blocks = [allocate(2 << 20) for _ in range(11)]
    os.kill(os.getpid(), 9)
""")
# Lives until its input ends.
WAITS = PROGRAM + textwrap.dedent("""
    block = allocate(2 << 20)
    print("ready", flush=True)
    sys.stdin.read()
""")


class Killed(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup, frameworks=False).install()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()

    def assert_nothing_is_left(self):
        until = time.monotonic() + 60
        while list(self.temporary.iterdir()) and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_a_program_that_is_killed_is_told_to_its_last_event(self):
        page = self.folder / "page.html"
        ended = self.site.run("thimble", "run", "--conf", CONF, "--report", str(page), "--",
                              "python", "-c", KILLED, TMPDIR=str(self.temporary))
        self.assertEqual(ended.returncode, -signal.SIGKILL)
        self.assertEqual(ended.said[0], "thimble: the program was killed by SIGKILL")
        self.assertIn("peak 22.00 MiB in use", ended.said[1])
        self.assertIn("11 allocations", ended.said[1])
        self.assertIn("incomplete: its process still runs, crashed or was killed",
                      ended.said[2])
        self.assertNotIn("missing", ended.stderr)
        self.assertEqual(ended.said[-1],
                         f"thimble: {page} shows where the memory of CPU went")
        self.assertIn(f'"peak_in_use":{22 << 20}', page.read_text())
        self.assert_nothing_is_left()

    def test_a_program_that_is_killed_before_it_takes_memory_has_no_page(self):
        page = self.folder / "page.html"
        ended = self.site.run("thimble", "run", "--conf", CONF, "--report", str(page), "--",
                              "sh", "-c", "kill -9 $$")
        self.assertEqual(ended.returncode, -signal.SIGKILL)
        self.assertIn("killed by SIGKILL", ended.said[0])
        self.assertEqual(ended.said[-1],
                         f"thimble: {page} was not written: the run wrote no log")
        self.assertFalse(page.exists())

    def test_stats_tell_a_program_that_was_killed_to_its_last_event(self):
        log = self.folder / "a.log"
        ended = self.site.run("python", "-c", KILLED, THIMBLE_CONF=f"{CONF},log:{log}")
        self.assertEqual(ended.returncode, -signal.SIGKILL)
        told = json.loads(self.site.run("thimble", "stats", "--json", str(log)).stdout)
        self.assertEqual((told["peak_in_use"], told["complete"]), (22 << 20, 0))
        self.assertIn("crashed or was killed", told["note"])

    def start(self):
        command = self.site.start("thimble", "run", "--conf", CONF, "--", "python", "-c", WAITS,
                                  TMPDIR=str(self.temporary))
        self.addCleanup(command.stdout.close)
        self.addCleanup(command.wait)
        self.addCleanup(command.stdin.close)
        self.assertEqual(command.stdout.readline(), "ready\n")
        return command

    def test_a_run_that_is_killed_leaves_nothing_when_its_program_ends(self):
        command = self.start()
        command.kill()
        command.wait()
        time.sleep(1)
        folder, = self.temporary.iterdir()
        self.assertEqual(len(list(folder.glob("*.log"))), 1, "the program still writes there")
        command.stdin.close()  # the program ends
        self.assert_nothing_is_left()

    def test_a_run_that_is_ended_leaves_nothing(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            command = self.start()
            command.send_signal(number)
            self.assertNotEqual(command.wait(timeout=60), 0)
            self.assert_nothing_is_left()

    def test_a_run_that_is_killed_with_its_program_leaves_nothing(self):
        """As a batch system does: all processes of the group at once."""
        command = self.site.start("setsid", "--wait", "thimble", "run", "--conf", CONF, "--",
                                  "python", "-c", WAITS, TMPDIR=str(self.temporary))
        self.addCleanup(command.stdout.close)
        self.addCleanup(command.stdin.close)
        self.assertEqual(command.stdout.readline(), "ready\n")
        folder, = self.temporary.iterdir()
        log, = folder.glob("*.log")
        os.killpg(os.getpgid(int(log.name.split(".")[0])), signal.SIGKILL)
        command.wait(timeout=60)
        self.assert_nothing_is_left()

    def test_a_closed_stderr_changes_no_status(self):
        for status in (0, 7):
            reader, writer = os.pipe()
            os.close(reader)
            ended = subprocess.run(["thimble", "run", "--conf", CONF, "--", "sh", "-c",
                                    f"exit {status}"], env=self.site.variables({}), stderr=writer,
                                   check=False, timeout=60,
                                   executable=str(self.site.folder / "bin" / "thimble"))
            os.close(writer)
            self.assertEqual(ended.returncode, status)


if __name__ == "__main__":
    unittest.main()
