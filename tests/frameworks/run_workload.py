"""Runs one program of tests/workloads on the simulated GPU, once for every named allocator.

    run_workload.py [--gpus N] --allocators NAME,NAME PROGRAM ARGUMENT...

Each run must succeed, make no illegal driver call, be served by the named allocator, and use no
more memory in later steps than in earlier ones, as far as the allocator reports it. Thimble is
installed in all runs, and serves only those that enable it. On a "watched" one, work takes time, and
races are looked for: the simulated GPU must know Thimble's blocks and the arguments of all kernels.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from tests.frameworks import installation

LAUNCHER = "tests/simgpu/run"
MEMORY = "4GiB"

WATCHED = {"THIMBLE_CONF": "nvtx:on", "SIMGPU_CONF": "clock:a100,summary:on"}

# The user's variables, and the framework's name for the allocator.
ALLOCATORS = {
    "bfc": ({}, "GPU_0_bfc"),
    "bfc_growth": ({"TF_FORCE_GPU_ALLOW_GROWTH": "true"}, "GPU_0_bfc"),
    "cuda_malloc_async": ({"TF_GPU_ALLOCATOR": "cuda_malloc_async"}, "gpu_async_0"),
    "thimble": ({"TF_GPU_ALLOCATOR": "thimble"}, "GPU_0_thimble"),
    "jax_default": ({}, "default"),
    "jax_growth": ({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, "default"),
    "jax_platform": ({"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, "platform"),
    "jax_cuda_async": ({"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"}, "cuda_async"),
    "jax_vmm": ({"XLA_PYTHON_CLIENT_ALLOCATOR": "vmm"}, "vmm"),
    "jax_thimble": ({"XLA_PYTHON_CLIENT_ALLOCATOR": "thimble"}, "thimble"),
    "thimble_watched": ({"TF_GPU_ALLOCATOR": "thimble", **WATCHED}, "GPU_0_thimble"),
    "jax_thimble_watched": ({"XLA_PYTHON_CLIENT_ALLOCATOR": "thimble", **WATCHED}, "thimble"),
}

# BFC, which serves JAX's "platform" too, counts what it hands out. That can be twice the requested
# size, depending on its free memory, and says nothing about growth.
COUNTS_CHUNKS = ("bfc", "bfc_growth", "jax_default", "jax_growth", "jax_platform")

# When XLA 0.10.2 ends in this mode, it unmaps its memory twice, logs that, and continues.
BREAKS_RULES = ("jax_vmm",)

# A user's variables must not affect a test.
FOREIGN = ("PYTHON", "TF_", "XLA_", "JAX_", "THIMBLE_", "SIMGPU_")


def grows(after_step):
    """True if the last steps use clearly more than the first half of them ever did.

    Single steps differ even when nothing is lost: buffers are freed when the device is done with
    them and not when the step is.
    """
    half, quarter = len(after_step) // 2, max(1, len(after_step) // 4)
    return half > 0 and min(after_step[-quarter:]) > 1.1 * max(after_step[:half])


def run(options, name, installed):
    command = [LAUNCHER, "--gpus", str(options.gpus), "--memory", MEMORY]
    command += ["--allow-illegal"] if name in BREAKS_RULES else []
    command += ["--", sys.executable, options.program, *options.arguments]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    # JAX would silently continue without a GPU; TensorFlow logs too much.
    environment.update(SIMGPU_PYTHON=sys.executable, JAX_PLATFORMS="cuda",
                       TF_CPP_MIN_LOG_LEVEL="2")
    environment.update(installed)
    environment.update(ALLOCATORS[name][0])
    return subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)


class Workload(unittest.TestCase):
    options = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.installed = installation.install(pathlib.Path(temporary.name) / "site")

    def test_runs(self):
        for name in self.options.allocators.split(","):
            with self.subTest(allocator=name):
                self.check(run(self.options, name, self.installed), name)

    def check(self, ended, name):
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        result = json.loads(ended.stdout.splitlines()[-1])
        self.assertEqual(result["allocator"], ALLOCATORS[name][1], ended.stderr)
        if name.endswith("_watched"):
            self.check_watched(ended.stderr)
        after_step = result["bytes_after_step"]
        self.assertEqual(len(after_step), result["steps"])
        if result["peak_bytes"] is None:  # this allocator of the framework keeps no account
            return
        self.assertGreaterEqual(result["peak_bytes"], max(after_step))
        # If requests differ from step to step, growth means nothing.
        alike = result["workload"] != "decode" and result.get("lengths") != "variable"
        if alike and name not in COUNTS_CHUNKS:
            self.assertFalse(grows(after_step), after_step)

    def check_watched(self, summary):
        found = re.search(r"(\d+) launches, arguments of ([0-9.]+) % looked at; races watched, "
                          r"(\d+) blocks reported", summary)
        self.assertIsNotNone(found, summary)
        self.assertGreater(int(found.group(1)), 0)
        self.assertGreaterEqual(float(found.group(2)), 99)
        self.assertGreater(int(found.group(3)), 0)
        busy = re.search(r"compute ([0-9.]+) s", summary)
        self.assertGreater(float(busy.group(1)), 0, summary)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--allocators", required=True)
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    Workload.options = parser.parse_args()
    unittest.main(argv=sys.argv[:1])
