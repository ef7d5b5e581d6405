"""The command among other commands: readers that stop reading, closed streams, full disks, special
files. It writes one clear line or none, and never a traceback."""

import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from tests.harmony import profile_files
from tests.plan import problem_files
from tests.report import recorded
from tests.swap import trace_files
from tests.wheel import installation
from tests.wheel import small_disk


class Streams(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup, frameworks=False).install()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.log = cls.folder / "a.log"
        ended = cls.site.run("python", "-c", recorded.PROGRAM,
                             THIMBLE_CONF=f"{recorded.CONF},log:{cls.log}")
        assert ended.returncode == 0, ended.stderr
        cls.write("p.csv", problem_files.PROBLEM)
        cls.write("t.trace", trace_files.TRACE)
        cls.write("profile.csv", profile_files.profile())
        cls.write("empty", "")
        (cls.folder / "folder").mkdir()

    @classmethod
    def write(cls, name, text):
        (cls.folder / name).write_text(text)

    def commands(self):
        """Every sub-command that writes to stdout on a machine without a GPU."""
        folder = self.folder
        harmony = ("--memory", "10GiB", "--batch", "4", "--gpus", "1", "--seconds", "0")
        return {
            "help": ("--help",), "version": ("--version",), "help of one": ("report", "--help"),
            "plan": ("plan", f"{folder}/p.csv", "--seconds", "0"),
            "swap": ("swap", f"{folder}/t.trace"),
            "curve": ("swap", f"{folder}/t.trace", "--curve"),
            "curve, json": ("swap", f"{folder}/t.trace", "--curve", "--json"),
            "harmony": ("harmony", f"{folder}/profile.csv", *harmony),
            "stats": ("stats", str(self.log)), "stats, json": ("stats", "--json", str(self.log)),
            "report": ("report", str(self.log), "-o", f"{folder}/r.html"),
            "doctor": ("doctor",), "doctor, json": ("doctor", "--json"),
        }

    def run_to(self, command, stdout):
        return subprocess.run(("thimble", *command), env=self.site.variables({}), stdout=stdout,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=240,
                              executable=str(self.site.folder / "bin" / "thimble"))

    def test_a_reader_that_leaves_ends_every_command_silently(self):
        for name, command in self.commands().items():
            with self.subTest(name):
                reader, writer = os.pipe()
                os.close(reader)
                ended = self.run_to(command, writer)
                os.close(writer)
                self.assertEqual((ended.returncode, ended.stderr), (-signal.SIGPIPE, ""))

    def test_a_full_disk_behind_stdout_is_told_once(self):
        for name, command in self.commands().items():
            if name in ("help", "version", "help of one"):
                continue  # argparse's
            with self.subTest(name), open("/dev/full", "w", encoding="utf-8") as full:
                ended = self.run_to(command, full)
                self.assertEqual(ended.returncode, 1, ended.stderr)
                self.assertEqual(ended.stderr, f"thimble {command[0]}: No space left on device\n")

    def test_closed_streams_harm_nothing(self):
        for name, command in self.commands().items():
            for closed in (">&-", "2>&-", "<&- >&- 2>&-"):
                with self.subTest(f"{name} {closed}"):
                    ended = self.site.run("sh", "-c", f'"$0" "$@" {closed}', "thimble", *command)
                    self.assertEqual(ended.returncode, 1 if command[0] == "doctor" else 0)
                    self.assertEqual(ended.stderr, "")

    def test_files_that_are_none_are_named(self):
        for command in (("plan",), ("swap",), ("stats",), ("report",),
                        ("harmony", "--memory", "1GiB", "--batch", "4", "--gpus", "1")):
            for name in ("empty", "folder", "none"):
                with self.subTest(f"{command[0]} {name}"):
                    ended = self.site.run("thimble", *command, str(self.folder / name))
                    self.assertEqual((ended.returncode, ended.stdout), (2, ""))
                    self.assertEqual(len(ended.stderr.splitlines()), 1, ended.stderr)
                    self.assertIn(name, ended.stderr)

    def test_a_name_that_is_no_text_is_written_as_it_is(self):
        name = os.fsencode(self.folder) + b"/\xff.log"
        with open(name, "wb") as copy:
            copy.write(self.log.read_bytes())
        ended = subprocess.run(["thimble", "stats", name], env=self.site.variables({}), check=False,
                               capture_output=True,
                               executable=str(self.site.folder / "bin" / "thimble"))
        self.assertEqual((ended.returncode, ended.stderr), (0, b""))
        self.assertEqual(ended.stdout.splitlines()[0], name)

    def test_what_does_not_fit_on_a_disk_is_named_and_not_left_behind(self):
        harmony = "--memory 10GiB --batch 4 --gpus 1 --seconds 0"
        folder = self.folder
        for name, command in {
            "page": f"report {self.log} -o out", "perfetto": f"report {self.log} --perfetto out",
            "speedscope": f"report {self.log} --speedscope out",
            "pytorch": f"report {self.log} --pytorch out", "rmm": f"report {self.log} --rmm out",
            "plan": f"plan {folder}/p.csv --seconds 0 --out out",
            "swap": f"swap {folder}/t.trace --out out",
            "schedule": f"harmony {folder}/profile.csv {harmony} --schedule out",
            "gantt": f"harmony {folder}/profile.csv {harmony} --gantt out",
        }.items():
            with self.subTest(name):
                # All but a few bytes of the disk are taken, and the old file stays.
                ended = small_disk.run(self.site, f"""
                    echo old > out
                    head -c 60K /dev/zero > rest; cat /dev/zero >> rest 2>&-
                    thimble {command}
                    echo status $?
                    ls; cat out
                """)
                self.assertEqual(ended.stdout.split("status ")[-1].split("\n", 1)[1],
                                 "out\nrest\nold\n", ended.stderr)
                self.assertNotIn("status 0", ended.stdout)
                self.assertEqual(len(ended.stderr.splitlines()), 1, ended.stderr)
                self.assertIn("'out'", ended.stderr)
                self.assertIn("No space left on device", ended.stderr)


if __name__ == "__main__":
    unittest.main()
