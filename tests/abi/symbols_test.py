"""What libraries show to the loader: the functions of their headers, and nothing that can fail.

P7 of the reliability promises: it loads anywhere. Static thread-local storage is a small pool that
all libraries of a process share, so a library that insists on it may not load at all.
"""

import pathlib
import re
import subprocess
import unittest

LIBRARY = pathlib.Path("allocator/libthimble.so")
HEADER = pathlib.Path("allocator/thimble.h")
OFFLINE = pathlib.Path("allocator/offline/libthimble_offline.so")
OFFLINE_HEADER = pathlib.Path("allocator/offline/thimble_offline.h")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library):
    """(type, name) of every symbol other libraries can link against."""
    lines = run("nm", "--dynamic", "--defined-only", str(library)).splitlines()
    symbols = [line.split()[-2:] for line in lines]
    return [(kind, name.partition("@")[0]) for kind, name in symbols if kind.isupper()]


def declared(header):
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    return re.findall(r"\b(thimble_\w+)\s*\(", text)


class Symbols(unittest.TestCase):

    def test_exports_exactly_the_functions_of_the_header(self):
        for library, header, least in ((LIBRARY, HEADER, 10), (OFFLINE, OFFLINE_HEADER, 2)):
            names = declared(header)
            self.assertGreaterEqual(len(names), least)
            self.assertEqual(sorted(name for _, name in exported(library)), sorted(names))
            self.assertEqual({kind for kind, _ in exported(library)}, {"T"})

    def test_needs_no_static_thread_local_storage(self):
        dynamic = run("readelf", "--dynamic", "--wide", str(LIBRARY))
        self.assertIn("NEEDED", dynamic)
        self.assertNotIn("STATIC_TLS", dynamic)
        relocations = run("readelf", "--relocs", "--wide", str(LIBRARY))
        self.assertIn("R_X86_64_DTPMOD64", relocations)  # what general-dynamic access looks like
        self.assertNotIn("TPOFF64", relocations.replace("DTPOFF64", ""))

    def test_has_less_than_64_bytes_of_thread_local_storage(self):
        segments = run("readelf", "--segments", "--wide", str(LIBRARY))
        sizes = re.findall(r"^\s+TLS(?:\s+0x\w+){4}\s+(0x\w+)", segments, flags=re.MULTILINE)
        self.assertEqual(len(sizes), 1, segments)
        self.assertLess(int(sizes[0], 16), 64)

    def test_has_no_text_relocations_and_no_executable_stack(self):
        self.assertNotIn("TEXTREL", run("readelf", "--dynamic", "--wide", str(LIBRARY)))
        segments = run("readelf", "--segments", "--wide", str(LIBRARY))
        stack = re.search(r"GNU_STACK.*", segments).group()
        self.assertNotIn("E", stack.replace("GNU_STACK", ""))
        self.assertNotRegex(segments, r"LOAD.*\bRWE\b")


if __name__ == "__main__":
    unittest.main()
