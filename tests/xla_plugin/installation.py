"""Stock JAX in a process of its own, with Thimble installed as the wheel installs it."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

from tests.frameworks import installation

LAUNCHER = "tests/simgpu/run"

# Helpers for all programs below: the arena's figures, through the front and thimble.h only.
PRELUDE = textwrap.dedent("""
    import ctypes, os, sys, types

    def front():
        '''The front, or None if the driver is not the front, or not loaded.'''
        try:
            driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD)
        except OSError:
            return None
        return driver if hasattr(driver, "thimble_front_arena") else None

    def arena(device=0):
        find = front().thimble_front_arena
        find.restype = ctypes.c_void_p
        return ctypes.c_void_p(find(device))

    def stats(device=0):
        core = ctypes.CDLL("libthimble.so", mode=os.RTLD_NOLOAD)
        core.thimble_stats_names.restype = ctypes.c_char_p
        names = core.thimble_stats_names().decode().split()
        numbers = (ctypes.c_uint64 * (1 + len(names)))()
        numbers[0] = ctypes.sizeof(numbers)
        assert core.thimble_get_stats(arena(device), numbers) == 0
        return types.SimpleNamespace(**dict(zip(names, numbers[1:])))
""")


class Installation:
    """A folder that Python treats as site-packages, in addition to its own."""

    def __init__(self, test):
        temporary = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        test.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name) / "site"
        installation.install_for_jax(self.folder)

    def python(self, program, environment=None, simulator=("--memory", "1GiB"), path=(), first=""):
        """Runs `first` and a program; on the simulated GPU unless `simulator` is None."""
        command = [sys.executable, "-c", PRELUDE + first + "\n" + textwrap.dedent(program)]
        if simulator is not None:
            command = [LAUNCHER, *simulator, "--"] + command
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith(("PYTHON", "XLA_", "JAX_", "THIMBLE_"))}
        variables["SIMGPU_PYTHON"] = sys.executable
        variables["PYTHONPATH"] = ":".join([str(self.folder), *map(str, path)])
        variables.update({"XLA_PYTHON_CLIENT_ALLOCATOR": "thimble"}
                         if environment is None else environment)
        ended = subprocess.run(command, env=variables, capture_output=True, text=True, check=False,
                               timeout=240)
        ended.said = [line for line in ended.stderr.splitlines() if line.startswith("thimble: ")]
        return ended


def thimble(**variables):
    return {"XLA_PYTHON_CLIENT_ALLOCATOR": "thimble", **variables}
