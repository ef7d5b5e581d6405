"""Runs gpu_cases.py on the simulated GPU, which fails it for any call that CUDA forbids."""

import os
import sys

os.environ["PYTHONPATH"] = os.getcwd()
os.execv("tests/simgpu/run", [
    "tests/simgpu/run", "--gpus", "2", "--memory", "4GiB", "--",
    sys.executable, "tests/tf_plugin/gpu_cases.py"])
