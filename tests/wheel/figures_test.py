"""`thimble stats`: figures of logs and of running programs."""

import contextlib
import json
import pathlib
import tempfile
import textwrap
import unittest

from tests.terminal import terminal
from tests.wheel import installation

# A loop that plans learn, without a framework.
LOOP = textwrap.dedent("""
    import ctypes, os, select, sys, time
    from thimble_gpu import abi

    core = abi.installed_core()
    arena = ctypes.c_void_p()
    core.check(core.create(os.environ["THIMBLE_CONF"].encode(), ctypes.byref(arena)))
    zero = ctypes.c_uint64(0)

    def step():
        blocks = []
        for bytes in (4 << 20, 6 << 20):
            block = ctypes.c_void_p()
            core.check(core.allocate(arena, ctypes.c_size_t(bytes), zero, zero, zero,
                                     ctypes.byref(block)))
            blocks.append(block)
        for block in blocks:
            core.check(core.free(arena, block, zero))

    for _ in range(3000):
        step()
        time.sleep(0.0005)  # for the thread that plans
""")


class Figures(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup, frameworks=False).install()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def stats(self, *arguments):
        return self.site.run("thimble", "stats", *arguments, TMPDIR=str(self.folder))

    def test_a_log_tells_what_plans_did(self):
        log = self.folder / "a.log"
        ended = self.site.run("python", "-c", LOOP,
                              THIMBLE_CONF=f"device:cpu,memory:64MiB,plan:auto,log:{log}")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        ended = self.stats(str(log), "--json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        figures = json.loads(ended.stdout)
        self.assertEqual(figures["allocations"], 6000)
        self.assertEqual(figures["peak_in_use"], 10 << 20)
        self.assertGreater(figures["plan_requests"], 1000)
        self.assertGreaterEqual(figures["plan_hits"], 0.99 * figures["plan_requests"])
        self.assertLessEqual(figures["plan_repeats"], figures["plan_hits"])
        self.assertRegex(self.stats(str(log)).stdout, r"plans: \d+\.\d\d % of \d+ requests")

    @contextlib.contextmanager
    def under_way(self):
        """A program that has 10 MiB in use from time to time, until the end of the block."""
        waits = LOOP + ("print('ready', flush=True)\n"
                        "while not select.select([sys.stdin], [], [], 0.05)[0]:\n    step()\n")
        program = self.site.start("thimble", "run", "--conf", "device:cpu,memory:64MiB", "--",
                                  "python", "-c", waits, TMPDIR=str(self.folder))
        try:
            self.assertEqual(program.stdout.readline(), "ready\n")
            yield program
        finally:
            program.communicate("")

    def live(self, site):
        return terminal.Program([str(site.folder / "bin" / "thimble"), "stats", "--every", "0.2"],
                                env=site.variables({"TMPDIR": str(self.folder), "TERM": "xterm",
                                                    "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}))

    def test_a_program_under_way_is_found(self):
        with self.under_way():
            ended = self.stats("--json")
            shown = self.stats()
        self.assertEqual(ended.returncode, 0, ended.stderr)
        stats = json.loads(ended.stdout)
        self.assertGreater(stats["allocations"], 1000)
        self.assertEqual(stats["reserved"], sum(stats[part] for part in (
            "in_use", "magazines", "free_small", "free_large", "spare")))
        self.assertEqual(stats["limit"], 64 << 20)
        self.assertIn("python", stats["program"])
        self.assertRegex(shown.stdout, r"(?m)^= reserved +10\.00 MiB  [█#]{5}$")
        self.assertEqual(self.stats().returncode, 2, "it has ended")

    def test_figures_come_line_by_line_until_the_program_ends(self):
        with self.under_way() as program:
            follower = self.site.start("thimble", "stats", "--json", "--every", "0.2",
                                       TMPDIR=str(self.folder))
            lines = [json.loads(follower.stdout.readline()) for _ in range(4)]
            program.stdin.close()
            program.stdin = None
            follower.communicate(timeout=60)
        self.assertEqual(follower.returncode, 0)
        counts = [line["allocations"] for line in lines]
        self.assertLess(counts[0], counts[-1])

    def check_live(self, site):
        with self.under_way() as program:
            shown = self.live(site)
            self.assertTrue(shown.read_until("= reserved"), shown.seen)
            self.assertTrue(shown.read_until("= reserved", times=3), shown.seen)
            self.assertIn("\x1b[", shown.seen, "it is written over")
            shown.press("\x03")
            shown.end(seconds=20)
            self.assertEqual(shown.process.returncode, 0, shown.seen)
            self.assertNotIn("Traceback", shown.seen)
            self.assertIn("█████", shown.seen)

            until_end = self.live(site)
            self.assertTrue(until_end.read_until("= reserved"), until_end.seen)
            program.stdin.close()
            program.stdin = None
            until_end.end(seconds=30)
            self.assertEqual(until_end.process.returncode, 0, until_end.seen)

    def test_a_terminal_is_refreshed_until_control_c(self):
        self.check_live(self.site)

    def test_a_terminal_is_refreshed_by_rich_if_there_is_one(self):
        rich = installation.Environment(self.addCleanup).install()
        self.assertEqual(rich.python("import rich").returncode, 0)
        self.check_live(rich)

    def test_names_what_is_wrong(self):
        foreign = self.folder / "foreign.log"
        foreign.write_text("no log")
        for arguments, part in ((["none.log"], "none.log"), ([str(foreign)], "foreign.log"),
                                ([], "thimble stats LOG"), (["--every", "0"], "--every"),
                                (["a.log", "--every", "1"], "leave it out")):
            ended = self.stats(*arguments)
            self.assertEqual(ended.returncode, 2)
            self.assertIn(part, ended.stderr)
            self.assertNotIn("Traceback", ended.stderr)


if __name__ == "__main__":
    unittest.main()
