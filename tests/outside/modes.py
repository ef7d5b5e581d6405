"""The modes in which every program runs: what a user would set, and nothing else."""

import os

STOCK = "stock"
PLAIN = "plain"
SWAP = "swap"
GPU_STOCK = "gpu_stock"
GPU = "gpu"

PART = 0.6  # of a program's own peak: its memory when it swaps
LIMIT = "8GiB"  # more than any program here needs
LEAST = 2 << 20  # a chunk: less is refused as a goal

# TensorFlow's CPU device. What `swap` adds depends on the program's peak: see tensorflow().
CPU = {
    STOCK: None,
    PLAIN: f"device:cpu,limit:{LIMIT}",
    "plan": f"device:cpu,limit:{LIMIT},plan:auto",
    SWAP: "device:cpu,swap:auto",
    "bfc": f"device:cpu,limit:{LIMIT},front:bfc",
}
# The same on the simulated GPU, which computes nothing.
SIMULATED = {
    GPU_STOCK: {"SIMGPU_CONF": "memory:16GiB", "TF_FORCE_GPU_ALLOW_GROWTH": "true"},
    GPU: {"SIMGPU_CONF": "memory:16GiB", "TF_FORCE_GPU_ALLOW_GROWTH": "true",
          "TF_GPU_ALLOCATOR": "thimble"},
}
# JAX on the simulated GPU. Stock is the mode of XLA in which every request reaches the driver, so
# that requests can be compared one by one.
JAX = {
    STOCK: {"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"},
    PLAIN: {"XLA_PYTHON_CLIENT_ALLOCATOR": "thimble"},
    "plan": {"XLA_PYTHON_CLIENT_ALLOCATOR": "thimble", "THIMBLE_CONF": "plan:auto"},
}
ALL = (*CPU, *SIMULATED)
THIMBLE = tuple(mode for mode in ALL if mode not in (STOCK, GPU_STOCK))

# What a user may have set must not decide a run.
FOREIGN = ("PYTHON", "PYTEST", "KERAS_", "TF_", "XLA_", "JAX_", "THIMBLE_", "SIMGPU_", "CUDA_")


def base_of(mode):
    """What the mode is compared with."""
    return GPU_STOCK if mode == GPU else STOCK


def is_stock(mode):
    return mode in (STOCK, GPU_STOCK)


def clean():
    """The environment without what a user may have set; TensorFlow says only what matters."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    # No GPU of the machine takes part, and no two processes share what Keras keeps at home.
    return {**kept, "TF_CPP_MIN_LOG_LEVEL": "1", "KERAS_BACKEND": "tensorflow"}


def tensorflow(mode, peak, hard):
    """Variables for a program whose peak is known if it swaps.

    `hard`: it must do with its part of the peak. Otherwise that is a goal only, for programs that
    hold tensors which cannot leave.
    """
    if mode in SIMULATED:
        return SIMULATED[mode]
    variables = {"CUDA_VISIBLE_DEVICES": ""}
    conf = CPU[mode]
    if mode == SWAP:
        part = int(PART * peak)
        conf += f",limit:{part}" if hard else f",limit:{LIMIT},swap_limit:{max(part, LEAST)}"
    return {**variables, "THIMBLE_CONF": conf} if conf else variables
