"""Runs JAX programs. For workers only: this process must run on the simulated GPU."""

import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import jax

from tests.programs import processes
from tests.programs.jax_generate import MEMORY

CONVERT = "tests/bench/convert"
VARIABLE = "XLA_PYTHON_CLIENT_ALLOCATOR"
STOCK = "cuda_async"  # in which XLA asks the driver for every buffer, as on Thimble
REQUEST = re.compile(r"cuMemAllocFromPoolAsync size=(\d+) pool=\d+ stream=\d+$", re.MULTILINE)
SERVED = re.compile(r"^A \d+ (\d+)", re.MULTILINE)


def is_out_of_memory(error):
    return str(error).startswith("RESOURCE_EXHAUSTED")


def _stock_requests(calls):
    """Returns the sizes of served requests in order, from the driver's log; failed calls have an
    error at the end."""
    return [int(size) for size in REQUEST.findall(calls.read_text())]


def _our_requests(log):
    """Returns the same from an event log, and checks the arena's invariants."""
    front = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD)
    front.thimble_front_arena.restype = ctypes.c_void_p
    core = ctypes.CDLL("libthimble.so", mode=os.RTLD_NOLOAD)
    arena = ctypes.c_void_p(front.thimble_front_arena(0))
    assert core.thimble_check(arena) == 0
    assert core.thimble_log_stop(arena) == 0
    trace = log.with_suffix(".txt")
    subprocess.run((CONVERT, log, trace), check=True)
    return [int(size) for size in SERVED.findall(trace.read_text())]


def run(text, site, conf):
    """Runs the program, on Thimble if `conf` is not None.

    `more` has the requested sizes in order, and the illegal calls.
    """
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        calls, illegal, log = (folder / name for name in ("calls", "illegal", "log"))

        def child(path):
            os.environ["SIMGPU_CONF"] = f"memory:{MEMORY},illegal:{illegal}"
            os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
            if conf is None:
                os.environ["SIMGPU_CONF"] += f",log:{calls}"
                os.environ[VARIABLE] = STOCK
                end = processes.executed(path, is_out_of_memory)
                return end, (_stock_requests(calls), illegal.read_text())
            os.environ[VARIABLE] = "thimble"
            os.environ["THIMBLE_CONF"] = ",".join(filter(None, (f"log:{log}", conf)))
            sys.path.insert(0, site)
            import thimble_boot  # pylint: disable=import-outside-toplevel,unused-import
            end = processes.executed(path, is_out_of_memory)
            return end, (_our_requests(log), illegal.read_text())

        return processes.run(text, child)
