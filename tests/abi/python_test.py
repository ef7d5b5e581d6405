"""libthimble.so from Python, as the stats and report tools use it: ctypes and nothing else."""

import ctypes
import json
import pathlib
import re
import subprocess
import sys
import textwrap
import unittest

LIBRARY = pathlib.Path("allocator/libthimble.so")
README = pathlib.Path("allocator/README.md")
OPTIONS_DEF = pathlib.Path("allocator/arena/options.def")
OPTIONS = b"device:cpu,memory:64MiB,chunk:64KiB"
OK, INVALID_ARGUMENT, OUT_OF_MEMORY = 0, 1, 2


def load():
    library = ctypes.CDLL(str(LIBRARY))
    library.thimble_last_error.restype = ctypes.c_char_p
    library.thimble_options.restype = ctypes.c_char_p
    library.thimble_options.argtypes = [ctypes.c_void_p]
    library.thimble_create.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]
    library.thimble_destroy.argtypes = [ctypes.c_void_p]
    library.thimble_allocate.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_void_p)
    ]
    library.thimble_free.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
    library.thimble_snapshot.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_size_t)
    ]
    return library


class Python(unittest.TestCase):

    def setUp(self):
        self.library = load()
        self.arena = ctypes.c_void_p()
        self.assertEqual(self.library.thimble_create(OPTIONS, self.arena), OK)
        self.addCleanup(self.library.thimble_destroy, self.arena)

    def allocate(self, size, key=0):
        block = ctypes.c_void_p()
        status = self.library.thimble_allocate(self.arena, size, 0, 0, key, block)
        return status, block.value

    def error(self):
        return self.library.thimble_last_error().decode()

    def snapshot(self):
        size = ctypes.c_size_t()
        self.assertEqual(self.library.thimble_snapshot(self.arena, None, size), OK)
        text = ctypes.create_string_buffer(size.value)
        self.assertEqual(self.library.thimble_snapshot(self.arena, text, size), OK)
        return json.loads(text.value)

    def test_version_and_options(self):
        self.assertEqual(self.library.thimble_abi_version(), 2)
        self.assertIn(b"memory:67108864", self.library.thimble_options(self.arena))

    def test_the_readme_has_the_table_of_options(self):
        lines = re.findall(r"^THIMBLE_(?:ARENA_)?OPTION\((\w+),(.*?)\)$", OPTIONS_DEF.read_text(),
                           flags=re.MULTILINE | re.DOTALL)
        rows = ["| `{}` | {} |".format(key, "".join(re.findall('"([^"]*)"', rest)))
                for key, rest in lines]
        self.assertGreater(len(rows), 10)
        table = README.read_text().partition("## Options")[2].partition("\n## ")[0]
        self.assertEqual(re.findall(r"^\| `\w+`.*", table, flags=re.MULTILINE), rows,
                         "write these rows, which are in options.def, into README.md")

    def test_a_block_holds_what_is_written(self):
        status, block = self.allocate(100000)
        self.assertEqual(status, OK)
        ctypes.memset(block, 0x5A, 100000)
        self.assertEqual(ctypes.string_at(block, 100000), b"\x5A" * 100000)
        self.assertEqual(self.library.thimble_free(self.arena, block, 0), OK)

    def test_errors_are_texts(self):
        status, block = self.allocate(1 << 40)
        self.assertEqual((status, block), (OUT_OF_MEMORY, None))
        self.assertIn("requested  1.00 TiB", self.error())
        self.assertEqual(self.library.thimble_free(self.arena, 0x1000, 0), INVALID_ARGUMENT)
        self.assertIn("0x1000", self.error())

    def test_the_snapshot_is_json_whose_pieces_tile_memory(self):
        blocks = [self.allocate(size, key=size)[1] for size in (1000, 100000, 3000000)]
        snapshot = self.snapshot()
        end = 0
        for piece in snapshot["pieces"]:
            self.assertEqual(piece["offset"], end)
            end += piece["bytes"]
        stats = snapshot["stats"]
        self.assertEqual(end, stats["reserved"])
        parts = ("in_use", "magazines", "free_small", "free_large", "spare")
        self.assertEqual(stats["reserved"], sum(stats[part] for part in parts))
        keys = {piece["key"] for piece in snapshot["pieces"] if piece["state"] == "used"}
        self.assertEqual(keys, {0, 100000, 3000000})  # a small block names no owner
        for block in blocks:
            self.assertEqual(self.library.thimble_free(self.arena, block, 0), OK)

    def test_the_interpreter_ends_with_a_live_arena(self):
        program = textwrap.dedent("""
            import ctypes, os, sys
            library = ctypes.CDLL(sys.argv[1])
            arena, block = ctypes.c_void_p(), ctypes.c_void_p()
            assert library.thimble_create(sys.argv[2].encode(), ctypes.byref(arena)) == 0
            allocate = library.thimble_allocate
            allocate.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t,
                                 ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p]
            assert allocate(arena, 1000, 0, 0, 0, ctypes.byref(block)) == 0
            exec(sys.argv[3])
        """)
        for end, status in (("pass", 0), ("sys.exit(7)", 7), ("os._exit(8)", 8), ("1 / 0", 1)):
            with self.subTest(end=end):
                ended = subprocess.run(
                    [sys.executable, "-c", program, str(LIBRARY), OPTIONS.decode(), end],
                    capture_output=True, text=True, timeout=60)
                self.assertEqual(ended.returncode, status, ended.stderr)


if __name__ == "__main__":
    unittest.main()
