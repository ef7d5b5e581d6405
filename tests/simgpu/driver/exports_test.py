"""The simulator has every driver function that the two wheels can look up."""

import ctypes
import importlib.util
import mmap
import os
import re
import unittest

FOLDER = "tests/simgpu/driver"

# Names of functions in the JAX plugin that it only prints, or that belong to other libraries.
NOT_ASKED_FOR = re.compile(rb"cu(Graphics\w+|Profiler\w+|MemGetAttribute(_v2)?)")

# How functions of the driver are called; cuBLAS and the others start differently.
DRIVER = re.compile(rb"\0(cu(?:Init|Driver|Device|Ctx|Mem|Stream|Event|Module|Func|Launch|Graph|Get|"
                    rb"Occupancy|Library|Kernel|Pointer|Ipc|Link)[A-Za-z0-9]*(?:_v[0-9])?)(?=\0)")


def package(name):
    return importlib.util.find_spec(name).submodule_search_locations[0]


def of_tensorflow(library):
    path = os.path.join(package("tensorflow"), "include/xla/tsl/cuda", library + ".inc")
    with open(path, encoding="utf-8") as file:
        # Without the debugger's variables, cudbg..., because nothing runs that could be debugged.
        return set(re.findall(r'"((?:cu|nvml)[A-Z]\w*)"', file.read()))


def of_jax():
    path = os.path.join(package("jax_plugins.xla_cuda12"), "xla_cuda_plugin.so")
    with open(path, "rb") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            names = set(DRIVER.findall(text))
    return {name.decode() for name in names if not NOT_ASKED_FOR.fullmatch(name)}


def missing(library, names):
    loaded = ctypes.CDLL(os.path.join(FOLDER, library))
    return sorted(name for name in names if not hasattr(loaded, name))


class ExportsTest(unittest.TestCase):

    def test_driver_has_what_tensorflow_asks_for(self):
        names = of_tensorflow("cuda")
        self.assertGreater(len(names), 500)
        self.assertEqual(missing("libcuda.so.1", names), [])

    def test_driver_has_what_jax_asks_for(self):
        names = of_jax()
        self.assertGreater(len(names), 300)
        self.assertEqual(missing("libcuda.so.1", names), [])

    def test_monitor_has_what_tensorflow_asks_for(self):
        self.assertEqual(missing("libnvidia-ml.so.1", of_tensorflow("nvml")), [])


if __name__ == "__main__":
    unittest.main()
