"""Finds the arenas of this process's frameworks, and reads and controls them."""

import ctypes
import json
import os
import re

from thimble_gpu import abi

CPU = "cpu"
FRAMEWORKS = ("tensorflow", "jax")
# The library of each framework, and the function that returns its arenas. Both are linked with the
# core, so looking up thimble.h through them finds the right copy, even if Thimble is installed
# twice.
_HOOKS = {
    "tensorflow": ("libthimble_tf_hooks.so", "thimble_tf_hooked_arena"),
    "jax": ("libthimble_xla.so", "thimble_front_arena"),
}
_TF_CPU = -1  # THIMBLE_TF_CPU
_TURN_ON = ("set TF_GPU_ALLOCATOR=thimble (TensorFlow), XLA_PYTHON_CLIENT_ALLOCATOR=thimble (JAX) "
            "or THIMBLE_CONF=device:cpu (TensorFlow without a GPU) before Python starts, or start "
            "the program with `thimble run`; `thimble doctor` shows what is missing")


class NotActive(RuntimeError):
    """Thimble does not serve the requested device in this process."""


class Arena:
    """One device of one framework."""

    def __init__(self, core, handle):
        self._core = core
        self._handle = handle

    def stats(self):
        return self._core.stats(self._handle)

    def options(self):
        options = dict(self._core.read_conf(os.fsdecode(self._core.options(self._handle)))[0])
        options["limit"] = str(self.stats()["limit"])  # may have changed
        return options

    def set_limit(self, limit):
        self._core.check(self._core.set_limit(self._handle, limit))

    def reset_peak(self):
        self._core.check(self._core.reset_peaks(self._handle))

    def begin_peak(self):
        mark = ctypes.c_uint64()
        self._core.check(self._core.peak_begin(self._handle, mark))
        return mark.value

    def read_peak(self, mark):
        peaks = abi.Peaks(struct_size=ctypes.sizeof(abi.Peaks))
        self._core.check(self._core.peak_read(self._handle, mark, peaks))
        return {name: getattr(peaks, name) for name in abi.PEAKS}

    def end_peak(self, mark):
        self._core.check(self._core.peak_end(self._handle, mark))

    def trim(self, keep_bytes):
        released = ctypes.c_uint64()
        self._core.check(self._core.trim(self._handle, keep_bytes, released))
        return released.value

    def start_log(self, path):
        self._core.check(self._core.log_start(self._handle, os.fsencode(path)))

    def stop_log(self):
        self._core.check(self._core.log_stop(self._handle))

    def snapshot(self):
        size = ctypes.c_size_t()
        while True:  # it may grow between the two calls
            self._core.check(self._core.snapshot(self._handle, None, size))
            size.value += 4096
            text = ctypes.create_string_buffer(size.value)
            status = self._core.snapshot(self._handle, text, size)
            if status == abi.OK or size.value <= len(text):
                self._core.check(status)
                return json.loads(text.value)


def _find_in(framework, index):
    name, function = _HOOKS[framework]
    for library in abi.loaded(name):
        find = getattr(library, function)
        find.restype = ctypes.c_void_p
        find.argtypes = (ctypes.c_int,)
        handle = find(index)
        if handle:
            return Arena(abi.Core(library), handle)
    return None


def first_device():
    """Returns TensorFlow's CPU device if Thimble serves it in this process, otherwise the first
    GPU."""
    return CPU if _find_in("tensorflow", _TF_CPU) else 0


def _is_cpu(device):
    """Whether `device` is "cpu", or a logical device such as "cpu:1"."""
    return isinstance(device, str) and re.fullmatch(CPU + r"(:\d+)?", device) is not None


def _check_device(device):
    if _is_cpu(device):
        return _TF_CPU - int(device.partition(":")[2] or 0)
    if isinstance(device, bool) or not isinstance(device, int) or device < 0:
        raise ValueError(f"device is {device!r}: give the number of a GPU, '{CPU}', or '{CPU}:1' "
                         "for a logical device")
    return device


def _why_not(device):
    if not any(abi.loaded(name) for name, _ in _HOOKS.values()):
        return f"Thimble is not active in this process: {_TURN_ON}"
    if not _is_cpu(device) and _find_in("tensorflow", _TF_CPU):
        return f"Thimble serves only TensorFlow's CPU device here: use device='{CPU}'"
    return (f"Thimble serves no memory of device {device!r} yet: a framework creates a device when "
            "it first computes there")


def find(device, framework):
    """Returns the arena of a device; `framework` may be None if only one framework uses it."""
    index = _check_device(device)
    if framework is not None and framework not in FRAMEWORKS:
        raise ValueError(f"framework is {framework!r}: use {' or '.join(FRAMEWORKS)}")
    wanted = FRAMEWORKS if framework is None else (framework,)
    if _is_cpu(device):
        wanted = [name for name in wanted if name == "tensorflow"]
    found = [arena for arena in (_find_in(name, index) for name in wanted) if arena]
    if not found:
        raise NotActive(_why_not(device))
    if len(found) > 1:
        raise ValueError(f"TensorFlow and JAX both use device {device!r}: pass "
                         "framework='tensorflow' or framework='jax'")
    return found[0]
