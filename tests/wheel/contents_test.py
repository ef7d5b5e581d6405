"""The wheel has the right files, passes the usual tools, and uninstalls completely."""

import csv
import email
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

from allocator.python import wheel_file
from tests.wheel import installation

TOOLS = pathlib.Path(sys.executable).parent
EXPORTS = {
    "tensorflow-plugins/libthimble_tf.so": {"thimble_tf_arena"},
    "thimble_gpu/lib/libthimble_tf_hooks.so": {"thimble_tf_install", "thimble_tf_hooked_arena"},
    "thimble_gpu/lib/libthimble_bfc.so": {"thimble_bfc_fit"},
    "thimble_gpu/lib/libthimble.so": re.compile("thimble_"),
    "thimble_gpu/lib/libthimble_xla.so": re.compile("thimble_front_|cu[A-Z]"),
}
TOP = {"thimble.pth", "thimble_boot.py", "tensorflow-plugins", "thimble_gpu", "thimble_gpu.libs"}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={"PATH": f"{TOOLS}:/usr/bin:/bin"})
    return done.returncode, done.stdout + done.stderr


class Contents(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.wheel = zipfile.ZipFile(installation.WHEEL)
        cls.addClassCleanup(cls.wheel.close)
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.wheel.extractall(cls.folder)
        [cls.information] = (path.name for path in cls.folder.glob("*.dist-info"))

    def test_the_files_lie_where_python_and_tensorflow_look(self):
        names = set(self.wheel.namelist())
        self.assertEqual({name.split("/")[0] for name in names}, TOP | {self.information})
        self.assertLessEqual(set(EXPORTS), names)
        self.assertEqual([name for name in names if name.startswith("tensorflow-plugins/")],
                         ["tensorflow-plugins/libthimble_tf.so"])

    def test_record_names_every_file_with_its_checksum(self):
        record = f"{self.information}/RECORD"
        lines = list(csv.reader(self.wheel.read(record).decode().splitlines()))
        self.assertEqual({line[0] for line in lines}, set(self.wheel.namelist()))
        for name, checksum, size in lines:
            if name != record:
                data = self.wheel.read(name)
                self.assertEqual(checksum, wheel_file.checksum(data), name)
                self.assertEqual(int(size), len(data), name)

    def test_the_same_contents_are_the_same_wheel(self):
        """Nothing in it depends on when it was made."""
        self.assertEqual({info.date_time for info in self.wheel.infolist()}, {wheel_file.TIME})
        again = self.folder.parent / (self.folder.name + ".whl")
        self.addCleanup(again.unlink)
        wheel_file.write(again, self.folder, f"{self.information}/RECORD")
        self.assertEqual(again.read_bytes(), pathlib.Path(installation.WHEEL).read_bytes())
        for name in self.wheel.namelist():
            if name.endswith(".json"):
                self.assertNotIn(b"timestamp", self.wheel.read(name))

    def test_metadata_forces_no_framework(self):
        metadata = email.message_from_bytes(self.wheel.read(f"{self.information}/METADATA"))
        self.assertEqual(metadata["Name"], "thimble-gpu")
        self.assertEqual(f"thimble_gpu-{metadata['Version']}.dist-info", self.information)
        self.assertIsNone(metadata["Requires-Dist"])
        versions = (self.folder / "thimble_gpu" / "version.py").read_text()
        self.assertIn(f'__version__ = "{metadata["Version"]}"', versions)
        for option in ("'front': ('tensorflow', 'thimble|bfc')",
                       "'cumemalloc': ('jax', 'arena|driver')"):
            self.assertIn(option, versions)
        entry_points = self.wheel.read(f"{self.information}/entry_points.txt").decode()
        self.assertIn("thimble = thimble_gpu.cli:main", entry_points)

    def test_auditwheel_agrees_with_the_tag(self):
        tag = re.search(r"manylinux_\w+", installation.WHEEL).group()
        status, told = run(str(TOOLS / "auditwheel"), "show", installation.WHEEL)
        self.assertEqual(status, 0, told)
        # Without TensorFlow's own library, which is the user's, it is as portable as its tag says.
        needed = re.search(r'constrains the platform tag to\s+"manylinux_\d+_(\d+)_x86_64"', told)
        self.assertLessEqual(int(needed.group(1)), int(tag.split("_")[2]), told)

    def test_nothing_in_it_is_out_of_place(self):
        # W004, W009, W010: what lies beside the package lies where Python and TensorFlow look.
        status, told = run(str(TOOLS / "check-wheel-contents"), "--ignore", "W004,W009,W010",
                           installation.WHEEL)
        self.assertEqual(status, 0, told)

    def test_libraries_show_their_interface_alone(self):
        for name, expected in EXPORTS.items():
            _, told = run("nm", "--dynamic", "--defined-only", str(self.folder / name))
            shown = [line.split()[-2:] for line in told.splitlines()]
            symbols = {symbol for kind, symbol in shown if kind.isupper()}
            if isinstance(expected, set):
                self.assertEqual(symbols, expected, name)
            else:
                self.assertEqual([name for name in symbols if not expected.match(name)], [])
                self.assertTrue(symbols)

    def test_libraries_look_for_others_in_the_wheel_alone(self):
        for name in EXPORTS:
            _, told = run("readelf", "--dynamic", "--wide", str(self.folder / name))
            for path in re.findall(r"(?:RUNPATH|RPATH).*\[(.*)\]", told):
                for folder in path.split(":"):
                    self.assertRegex(folder, r"^\$ORIGIN(/\.\.)*(/thimble_gpu(/lib|\.libs))?$")
            _, sections = run("readelf", "--sections", "--wide", str(self.folder / name))
            self.assertNotIn(".debug_", sections)
            self.assertNotIn(b"/execroot/", (self.folder / name).read_bytes(), name)

    def test_an_uninstall_leaves_nothing_behind(self):
        environment = installation.Environment(self.addCleanup, frameworks=False)
        (environment.site / "neighbour.py").touch()
        before = environment.files()
        environment.install()
        installed = set(environment.files()) - set(before)
        self.assertIn("bin/thimble", installed)
        self.assertEqual(environment.python("import thimble_gpu").returncode, 0)
        environment.pip("uninstall", "--yes", "thimble-gpu")
        self.assertEqual(environment.files(), before)


if __name__ == "__main__":
    unittest.main()
