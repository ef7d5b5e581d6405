"""The common start of report tests: the installed wheel, and the log of a program."""

import json
import pathlib
import tempfile
import textwrap
import unittest

from tests.wheel import installation

# Takes memory as a framework's plugin does, without a framework: eight blocks, a block that is
# stitched from every second of them, and a request that is refused.
PROGRAM = textwrap.dedent("""
    import ctypes, os
    from thimble_gpu import abi

    core = abi.installed_core()
    core._library.thimble_remember.restype = ctypes.c_uint64
    arena, block = ctypes.c_void_p(), ctypes.c_void_p()
    core.check(core.create(os.environ["THIMBLE_CONF"].encode(), ctypes.byref(arena)))
    zero = ctypes.c_uint64(0)

    def allocate(name, bytes):
        key = core.remember(arena, name.encode(), ctypes.c_size_t(len(name)))
        core.check(core.allocate(arena, ctypes.c_size_t(bytes), zero, zero, ctypes.c_uint64(key),
                                 ctypes.byref(block)))
        return ctypes.c_void_p(block.value)

    blocks = [allocate(f"encoder/layer_{i}/MatMul", 2 << 20) for i in range(8)]
    core.check(core.mark_step(arena))
    for even in blocks[::2]:
        core.check(core.free(arena, even, zero))
    large = allocate("decoder/</script>Relu", 8 << 20)
    try:
        allocate("decoder/Softmax", 32 << 20)
    except abi.ThimbleError:
        pass
""")
CONF = "device:cpu,memory:16MiB"


class Case(unittest.TestCase):
    """A test with a folder for a log and its output."""

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup, frameworks=False).install()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.log, self.page = self.folder / "a.log", self.folder / "a.html"

    def record(self, program=PROGRAM, conf=CONF):
        ended = self.site.run("python", "-c", program, THIMBLE_CONF=f"{conf},log:{self.log}")
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def report(self, *arguments):
        return self.site.run("thimble", "report", *map(str, arguments))

    def stats(self, status=0):
        ended = self.site.run("thimble", "stats", "--json", str(self.log))
        self.assertEqual(ended.returncode, status, ended.stderr)
        line = json.loads(ended.stdout)
        self.assertEqual(line.pop("log"), str(self.log))
        return line

    def export(self, option, name):
        out = self.folder / name
        ended = self.report(self.log, option, out)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(ended.stdout, f"{out}\n", "and no page")
        return out
