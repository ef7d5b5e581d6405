"""Streams and events, and which calls wait while a kernel runs."""

import ctypes
import time

from thimble_gpu.selftest import cuda as cu
from thimble_gpu.selftest.gpu import Broken
from thimble_gpu.selftest.gpu import random_bytes

_MOST_NS = 1_000_000_000  # a kernel ends by itself, so that a driver that waits for it goes on
_AT_ONCE = 0.25  # seconds: far above the price of a call, far below _MOST_NS


class _Running:
    """A kernel that runs on a stream of its own until the block ends."""

    def __init__(self, work):
        self._gpu = work.gpu
        self._flag = ctypes.c_uint32.from_buffer(work.pinned(4096))
        self._flag.value = 0
        self.stream, self.event = work.stream(), work.event()

    def __enter__(self):
        cuda = self._gpu.cuda
        self._gpu.kernels.wait(ctypes.addressof(self._flag), _MOST_NS, self.stream)
        cuda.cuEventRecord(self.event, self.stream)
        return self

    def __exit__(self, *error):
        self._flag.value = 1
        self._gpu.cuda.attempt("cuStreamSynchronize", self.stream)

    def is_over(self):
        error = self._gpu.cuda.attempt("cuEventQuery", self.event)
        if error not in ("", cu.NOT_READY):
            raise cu.CudaError(f"cuEventQuery: {error}")
        return not error


def _warm(gpu):
    """Compiles and loads the kernels; the first launch may wait for everything."""
    gpu.kernels.fill(0, 0, 0)
    gpu.cuda.cuCtxSynchronize()


def events(work):
    cuda = work.gpu.cuda
    _warm(work.gpu)
    later, behind = work.stream(), work.event()
    with _Running(work) as running:
        cuda.cuStreamWaitEvent(later, running.event, 0)
        cuda.cuEventRecord(behind, later)
        seen = (running.is_over(), not cuda.attempt("cuEventQuery", behind))
    cuda.cuEventSynchronize(behind)
    after = (running.is_over(), not cuda.attempt("cuEventQuery", behind))
    if after != (True, True):
        raise Broken("an event has not happened after the program waited for it")
    work.gpu.need_computing()
    if seen != (False, False):
        raise Broken("an event happened before the kernel in front of it was over")
    return "happen behind the work before them, in other streams too"


def copies_beside_kernels(work):
    gpu = work.gpu
    _warm(gpu)
    address, host = work.memory(gpu.chunk or 2 << 20), work.pinned(gpu.chunk or 2 << 20)
    stream = work.stream()
    host.raw = random_bytes(len(host), 13)
    expected = host.raw
    with _Running(work) as running:
        gpu.cuda.cuMemcpyHtoDAsync_v2(address, ctypes.addressof(host), len(host), stream)
        gpu.cuda.cuStreamSynchronize(stream)
        ctypes.memset(host, 0, len(host))
        gpu.cuda.cuMemcpyDtoHAsync_v2(ctypes.addressof(host), address, len(host), stream)
        gpu.cuda.cuStreamSynchronize(stream)
        waited = running.is_over()
    if host.raw != expected:
        raise Broken("bytes changed on the way to the device and back")
    gpu.need_computing()
    if waited:
        raise Broken("a copy in one stream waits for a kernel in another: swapping hides nothing")
    return "both ways, while a kernel runs"


def mapping_beside_kernels(work):
    """Maps and unmaps other memory while a kernel runs."""
    gpu = work.gpu
    _warm(gpu)
    used = work.side_by_side([work.create()])
    data = random_bytes(gpu.chunk, 14)
    gpu.write(used, data)
    address = work.reserve(gpu.chunk)
    chunk = []
    steps = (("cuMemCreate", lambda: chunk.append(work.create())),
             ("cuMemMap", lambda: work.map(address, chunk[0])),
             ("cuMemSetAccess", lambda: work.open(address)),
             ("cuMemUnmap", lambda: work.unmap(address)),
             ("cuMemRelease", lambda: work.destroy(chunk[0])))
    waiting = []
    with _Running(work) as running:
        for name, step in steps:
            begin = time.monotonic()
            step()
            if time.monotonic() - begin > _AT_ONCE:
                waiting.append(name)
        over = running.is_over()
    if gpu.read(used, gpu.chunk) != data:
        raise Broken("memory that was left alone lost bytes")
    gpu.need_computing()
    if over and not waiting:
        raise Broken("the kernel ended before it was told to")
    return ("it runs on, and " +
            (f"these calls wait for it: {', '.join(waiting)}" if waiting else "no call waits"))


CHECKS = (("events", events), ("copies beside kernels", copies_beside_kernels))
MAPPING = (("mapping beside kernels", mapping_beside_kernels),)
