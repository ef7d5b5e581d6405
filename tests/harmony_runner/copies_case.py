"""Copies tensors to two GPUs and back. Prints where they are and what memory is left."""

import ctypes
import json

import numpy as np
import tensorflow as tf

from thimble_gpu.harmony.device import HOST
from thimble_gpu.harmony.device import Device


def is_pinned(tensor):
    """Asks the driver: it has no flags for ordinary memory."""
    address = np.frombuffer(memoryview(tensor), np.uint8).ctypes.data
    flags = ctypes.c_uint()
    cuda = ctypes.CDLL("libcuda.so.1")
    return cuda.cuMemHostGetFlags(ctypes.byref(flags), ctypes.c_void_p(address)) == 0


def main():
    devices = [Device("GPU:0"), Device("GPU:1")]
    before = {device.name: device.bytes_in_use() for device in devices}
    with tf.device(HOST):
        first = tf.random.uniform([1 << 18])
    there = devices[0].bring(first)
    onward = devices[1].bring(there)
    back = devices[1].take_away(onward)
    again = devices[0].take_away(devices[0].bring(back))
    del there, onward
    print(json.dumps({
        "pinned": {"made here": is_pinned(first), "taken away": is_pinned(again)},
        "held": {device.name: device.bytes_in_use() - before[device.name] for device in devices},
        "same": bool(np.array_equal(first, again))}))


main()
