"""The probes of `thimble doctor`, each in a process of its own: python -m thimble_gpu.probe NAME.

Prints one line with the result. Exit status 0 if it works.
"""

import ctypes
import sys

import thimble_gpu
from thimble_gpu import abi
from thimble_gpu import text


def driver():
    """Creates an arena on the first GPU, which needs a CUDA driver, a device and virtual memory
    management."""
    core = abi.installed_core()
    arena = ctypes.c_void_p()
    core.check(core.create(b"device:0", ctypes.byref(arena)))
    limit = core.stats(arena)["limit"]
    core.destroy(arena)
    return f"GPU 0 with {text.size(limit)}, virtual memory management works"


def tensorflow():
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    tf.ones([4]) + 1  # pylint: disable=expression-not-assigned
    for device in (0, "cpu"):
        try:
            stats = thimble_gpu.stats(device, "tensorflow")
        except thimble_gpu.NotActive:
            continue
        name = "the CPU device" if device == "cpu" else f"GPU {device}"
        return f"Thimble serves {name}, limit {text.size(stats['limit'])}"
    if gpus:
        raise SystemExit("TensorFlow uses its own allocator")
    raise SystemExit("TensorFlow found no GPU; without one, THIMBLE_CONF=device:cpu serves its CPU "
                     "device")


def jax():
    import jax as framework  # pylint: disable=import-outside-toplevel
    framework.numpy.ones(4).block_until_ready()
    platform = framework.devices()[0].platform
    if platform != "gpu":
        raise SystemExit(f"JAX found no GPU and uses the {platform}")
    try:
        stats = thimble_gpu.stats(0, "jax")
    except thimble_gpu.NotActive:
        raise SystemExit("JAX uses its own allocator") from None
    return f"Thimble serves GPU 0, limit {text.size(stats['limit'])}"


if __name__ == "__main__":
    try:
        print({"driver": driver, "tensorflow": tensorflow, "jax": jax}[sys.argv[1]]())
    except (abi.ThimbleError, RuntimeError) as problem:
        sys.exit(str(problem).splitlines()[0])
