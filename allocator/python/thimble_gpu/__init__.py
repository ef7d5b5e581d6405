"""Figures and controls of Thimble, for programs whose framework uses it.

    import thimble_gpu
    thimble_gpu.memory_stats()["peak_bytes_in_use"]
    with thimble_gpu.peak() as peak:
        step()
    peak.bytes

`device` is the number of a GPU as the framework counts (TensorFlow: of its logical devices; JAX: of
the GPUs it can see), "cpu" for TensorFlow's CPU device, or "cpu:1" for its logical device CPU:1.
`framework` is "tensorflow" or "jax"; it is needed only if both use the device. Sizes are in bytes.
"""

from thimble_gpu import arenas as _arenas
from thimble_gpu.abi import ThimbleError
from thimble_gpu.arenas import NotActive
from thimble_gpu.peaks import Peak as peak
from thimble_gpu.version import __version__

__all__ = ("NotActive", "ThimbleError", "log", "memory_stats", "peak", "reset_peak", "set",
           "settings", "snapshot", "stats", "stop_log", "trim", "__version__")

# PJRT's names, as in jax.Device.memory_stats(), and the figures behind them.
_PJRT = {
    "num_allocs": "allocations",
    "bytes_in_use": "in_use",
    "peak_bytes_in_use": "peak_in_use",
    "largest_alloc_size": "largest_request",
    "bytes_limit": "limit",
    "bytes_reserved": "reserved",
    "peak_bytes_reserved": "peak_reserved",
    "bytes_reservable_limit": "limit",
    "largest_free_block_bytes": "largest_free",
    "pool_bytes": "reserved",
    "peak_pool_bytes": "peak_reserved",
    "peak_allocated_bytes": "peak_in_use",
}
# Thimble's own figures, named as in allocator/README.md. All are of one moment, and bytes_reserved
# is exactly the sum of bytes_in_use, bytes_magazines, bytes_free_small, bytes_free_large and
# bytes_spare.
_OWN = {
    "bytes_magazines": "magazines",  # small blocks that threads keep
    "bytes_free_small": "free_small",  # free in slabs of small blocks
    "bytes_free_large": "free_large",  # free elsewhere
    "bytes_spare": "spare",  # chunks without a place, used before any other
    "bytes_swapped": "swapped",  # held blocks whose bytes are on the host: not in bytes_reserved
    "bytes_vacant": "vacant",  # addresses without memory: not in bytes_reserved
}


def memory_stats(device=0, framework=None):
    """Returns PJRT's twelve figures for everything that the framework holds on the device, and the
    parts of bytes_reserved."""
    own = stats(device, framework)
    return {name: own[source] for name, source in {**_PJRT, **_OWN}.items()}


def stats(device=0, framework=None):
    """Returns Thimble's own figures: thimble_stats, which allocator/thimble.h explains."""
    return _arenas.find(device, framework).stats()


def reset_peak(device=0, framework=None):
    """Restarts peaks from the current values."""
    _arenas.find(device, framework).reset_peak()


def trim(keep_bytes=0, device=0, framework=None):
    """Gives free memory back to the device until `keep_bytes` are reserved; returns how much."""
    if isinstance(keep_bytes, bool) or not isinstance(keep_bytes, int) or keep_bytes < 0:
        raise ValueError(f"keep_bytes is {keep_bytes!r}: give a number of bytes from 0")
    return _arenas.find(device, framework).trim(keep_bytes)


def settings(device=0, framework=None):
    """Returns the options in force, as texts."""
    return _arenas.find(device, framework).options()


def set(name, value, device=0, framework=None):  # pylint: disable=redefined-builtin
    """Changes a setting while the program runs. Only "limit" can change, in bytes.

    The limit can go down to what is in use, and up to its value at the start. Free memory above it
    goes back to the device.
    """
    if name != "limit":
        raise ValueError(f"setting {name!r} cannot change while the program runs: only 'limit' "
                         "can; log() and stop_log() control the event log")
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"limit is {value!r}: give a positive number of bytes")
    _arenas.find(device, framework).set_limit(value)


def snapshot(device=0, framework=None):
    """Returns every piece of memory and who holds it, as thimble_snapshot() describes them."""
    return _arenas.find(device, framework).snapshot()


def log(path, device=0, framework=None):
    """Records every allocation and free in a file, until stop_log()."""
    _arenas.find(device, framework).start_log(path)


def stop_log(device=0, framework=None):
    """Completes the file that log() began."""
    _arenas.find(device, framework).stop_log()
