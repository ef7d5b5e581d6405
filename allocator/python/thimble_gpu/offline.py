"""Python bindings of allocator/offline/thimble_offline.h: tools that run outside of training."""

import ctypes
import functools
import json
import os

from thimble_gpu import abi


@functools.lru_cache(maxsize=None)
def _library():
    library = abi.installed("libthimble_offline.so")
    library.thimble_offline_run.argtypes = (
        ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_void_p))
    library.thimble_offline_free.argtypes = (ctypes.c_void_p,)
    library.thimble_offline_free.restype = None
    return library


def run(tool, **arguments):
    """Runs a tool and returns its answer. Leaves out arguments that are None. Raises
    ThimbleError."""
    library = _library()
    texts = [os.fsencode(f"{name}={value}") for name, value in arguments.items()
             if value is not None]
    answer = ctypes.c_void_p()
    status = library.thimble_offline_run(
        tool.encode(), (ctypes.c_char_p * len(texts))(*texts), len(texts), ctypes.byref(answer))
    try:
        text = (ctypes.string_at(answer) if answer else b"the host is out of memory").decode(
            errors="surrogateescape")
    finally:
        library.thimble_offline_free(answer)
    if status != abi.OK:
        raise abi.ThimbleError(text, status)
    return json.loads(text)
