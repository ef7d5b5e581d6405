"""`thimble stats`: figures of logs and of programs that are still under way."""

import json
import pathlib
import tempfile
import textwrap
import unittest

from tests.wheel import installation

# A loop that plans learn, without a framework.
LOOP = textwrap.dedent("""
    import ctypes, os, sys, time
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

    def test_a_program_under_way_is_found(self):
        waits = LOOP + "print('ready', flush=True)\nsys.stdin.read()\n"
        program = self.site.start("thimble", "run", "--conf", "device:cpu,memory:64MiB", "--",
                                  "python", "-c", waits, TMPDIR=str(self.folder))
        try:
            self.assertEqual(program.stdout.readline(), "ready\n")
            ended = self.stats("--json")
        finally:
            program.communicate("")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertGreater(json.loads(ended.stdout)["allocations"], 1000)
        self.assertEqual(self.stats().returncode, 2, "it has ended")

    def test_names_what_is_wrong(self):
        foreign = self.folder / "foreign.log"
        foreign.write_text("no log")
        for arguments, part in ((["none.log"], "none.log"), ([str(foreign)], "foreign.log"),
                                ([], "thimble stats LOG")):
            ended = self.stats(*arguments)
            self.assertEqual(ended.returncode, 2)
            self.assertIn(part, ended.stderr)
            self.assertNotIn("Traceback", ended.stderr)


if __name__ == "__main__":
    unittest.main()
