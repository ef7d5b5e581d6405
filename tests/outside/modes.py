"""The modes in which every program runs, each with only the settings of a user."""

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

# A user's variables must not affect a run.
FOREIGN = ("PYTHON", "PYTEST", "KERAS_", "TF_", "XLA_", "JAX_", "THIMBLE_", "SIMGPU_", "CUDA_")


def base_of(mode):
    """What the mode is compared with."""
    return GPU_STOCK if mode == GPU else STOCK


def is_stock(mode):
    return mode in (STOCK, GPU_STOCK)


def clean():
    """Returns the environment without a user's variables, with a quiet TensorFlow."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    # Hides the machine's GPUs, and gives every process its own folder for Keras.
    return {**kept, "TF_CPP_MIN_LOG_LEVEL": "1", "KERAS_BACKEND": "tensorflow"}


def tensorflow(mode, peak, hard):
    """Variables for a program whose peak is known if it swaps.

    `hard`: part of the peak is a limit. Otherwise it is only a goal, for programs that hold tensors
    which cannot leave.
    """
    if mode in SIMULATED:
        return SIMULATED[mode]
    variables = {"CUDA_VISIBLE_DEVICES": ""}
    conf = CPU[mode]
    if mode == SWAP:
        part = int(PART * peak)
        conf += f",limit:{part}" if hard else f",limit:{LIMIT},swap_limit:{max(part, LEAST)}"
    return {**variables, "THIMBLE_CONF": conf} if conf else variables
