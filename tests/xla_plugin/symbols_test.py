"""The front exports the driver's functions and its own, and nothing else."""

import importlib.util
import pathlib
import re
import subprocess
import unittest

FRONT = pathlib.Path("xla_plugin/driver_front/libthimble_xla.so")
FOLDER = pathlib.Path("xla_plugin/driver_front")
OWN = {
    "thimble_front_abi_version", "thimble_front_arena", "thimble_front_fraction",
    "thimble_front_open", "thimble_front_start", "thimble_front_take_failure"
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported():
    lines = run("nm", "--dynamic", "--defined-only", str(FRONT)).splitlines()
    return {line.split()[2]: line.split()[1] for line in lines}


def names(file):
    return (FOLDER / file).read_text().split()


def strings_of_the_plugin():
    """Names of driver functions in the CUDA plugin of the installed JAX."""
    spec = importlib.util.find_spec("jax_plugins.xla_cuda12")
    plugin = pathlib.Path(spec.submodule_search_locations[0]) / "xla_cuda_plugin.so"
    pattern = rb"\0(cu[A-Z][A-Za-z]\w+)(?=\0)"
    return {name.decode() for name in re.findall(pattern, plugin.read_bytes())}


class Symbols(unittest.TestCase):

    def test_exports_the_drivers_functions_and_its_own(self):
        self.assertEqual(set(exported()), set(names("driver_names.txt")) | OWN)
        self.assertEqual(set(exported().values()), {"T"})

    def test_the_header_declares_what_is_its_own(self):
        text = re.sub(r"/\*.*?\*/", "", (FOLDER / "driver_front.h").read_text(), flags=re.DOTALL)
        self.assertEqual(set(re.findall(r"\b(thimble_front_\w+)\s*\(", text)), OWN)

    def test_the_lists_are_sorted_and_fit_together(self):
        for file in ("driver_names.txt", "served_names.txt"):
            self.assertEqual(names(file), sorted(set(names(file))))
        self.assertLess(set(names("served_names.txt")), set(names("driver_names.txt")))

    def test_every_function_that_jax_looks_up_is_there(self):
        wanted = strings_of_the_plugin()
        self.assertGreater(len(wanted), 100)
        self.assertEqual(wanted - set(exported()), set())

    def test_has_the_drivers_name_and_finds_the_core_beside_itself(self):
        dynamic = run("readelf", "--dynamic", "--wide", str(FRONT))
        self.assertIn("Library soname: [libcuda.so.1]", dynamic)
        self.assertRegex(dynamic, r"NEEDED.*\[libthimble\.so\]")
        self.assertRegex(dynamic, r"RUNPATH.*[\[:]\$ORIGIN[\]:]")
        self.assertIn("SYMBOLIC", dynamic)
        self.assertNotIn("TEXTREL", dynamic)
        self.assertNotIn("STATIC_TLS", dynamic)

    def test_has_no_executable_stack(self):
        segments = run("readelf", "--segments", "--wide", str(FRONT))
        stack = re.search(r"GNU_STACK.*", segments).group()
        self.assertNotIn("E", stack.replace("GNU_STACK", ""))


if __name__ == "__main__":
    unittest.main()
