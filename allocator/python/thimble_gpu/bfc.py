"""Computes how much memory TensorFlow's own allocator would have needed.

Runs in a process of its own (`python -m thimble_gpu.bfc TRACE`), because TensorFlow's library is
large and writes to stderr when it loads.
"""

import ctypes
import importlib.util
import os
import subprocess
import sys

from thimble_gpu import frameworks
from thimble_gpu import text

STEP = 2 << 20  # resolution of the answer, in bytes
FRAMEWORK = "libtensorflow_framework.so.2"
LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "libthimble_bfc.so")


class Unknown(Exception):
    """There is no answer; the text says why."""


def fit(trace, seconds):
    """Returns the smallest memory in which BFC serves a text trace. Raises Unknown."""
    problem = frameworks.tensorflow_problem()
    if problem:
        raise Unknown(problem)
    if seconds <= 0:
        raise Unknown("the comparison took too long")
    try:
        done = subprocess.run([sys.executable, "-m", "thimble_gpu.bfc", trace], text=True,
                              capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise Unknown("the comparison took too long") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise Unknown(lines[-1] if lines else f"it {text.how_ended(done.returncode)}")
    return int(done.stdout)


def main(trace):
    # Once loaded, the loader finds it by name, wherever TensorFlow is installed.
    folder = importlib.util.find_spec("tensorflow").submodule_search_locations[0]
    ctypes.CDLL(os.path.join(folder, FRAMEWORK))
    library = ctypes.CDLL(LIBRARY)
    library.thimble_bfc_fit.restype = ctypes.c_char_p
    needed = ctypes.c_uint64()
    error = library.thimble_bfc_fit(os.fsencode(trace), ctypes.byref(needed))
    if error:
        sys.exit(error.decode())
    print(needed.value)


if __name__ == "__main__":
    main(sys.argv[1])
