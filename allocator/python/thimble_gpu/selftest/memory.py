"""Stitched, swapped and host-backed memory, written and read by copies and by kernels."""

import ctypes
import dataclasses
import hashlib

from thimble_gpu.selftest import cuda as cu
from thimble_gpu.selftest.gpu import Broken
from thimble_gpu.selftest.gpu import Lost
from thimble_gpu.selftest.gpu import random_bytes
from thimble_gpu.selftest.kernels import pattern

_CYCLES = 8
_WORD = 4

def _hash(data):
    return hashlib.blake2b(data).digest()


def _kernels_agree(work, address, count, seed):
    """Lets a kernel write the memory, compares it on the host, and lets another kernel read it."""
    gpu = work.gpu
    words = count // _WORD
    wrong = work.memory(_WORD)
    gpu.write(wrong, bytes(_WORD))
    gpu.kernels.fill(address, words, seed)
    gpu.kernels.check(address, words, seed, wrong)
    gpu.cuda.cuCtxSynchronize()
    seen, missed = gpu.read(address, count), int.from_bytes(gpu.read(wrong, _WORD), "little")
    gpu.need_computing()
    if seen != pattern(words, seed):
        raise Broken("a copy does not find what a kernel wrote")
    if missed:
        raise Broken(f"a kernel finds {missed} of {words} words wrong that another one wrote")


def stitched_memory_by_copies(work):
    gpu = work.gpu
    chunks = [work.create() for _ in range(8)]
    home = work.side_by_side(chunks)
    order = [5, 0, 7, 2]
    stitched = work.side_by_side([chunks[place] for place in order])
    count = len(order) * gpu.chunk
    data = random_bytes(count, 6)
    gpu.write(stitched, data)
    at_home = b"".join(gpu.read(home + place * gpu.chunk, gpu.chunk) for place in order)
    if gpu.read(stitched, count) != data or at_home != data:
        raise Broken("one copy across four chunks does not write the bytes of all of them")
    return "one copy across four chunks that are not neighbours"


def stitched_memory_by_kernels(work):
    chunks = [work.create() for _ in range(4)]
    stitched = work.side_by_side([chunks[place] for place in (2, 0, 3, 1)])
    _kernels_agree(work, stitched, 4 * work.gpu.chunk, seed=7)
    home = work.side_by_side(chunks)
    words = work.gpu.chunk // _WORD
    if work.gpu.read(home, work.gpu.chunk) != pattern(4 * words, 7)[words * _WORD:
                                                                   2 * words * _WORD]:
        raise Broken("a chunk does not show at home what a kernel wrote through its alias")
    return "a kernel writes four chunks as one block, another reads them"


def swapping(work):
    """The bytes leave, their chunks are destroyed, and new chunks take their addresses."""
    gpu = work.gpu
    count = 4 * gpu.chunk
    address = work.reserve(count)
    data = random_bytes(count, 8)
    host = work.pinned(count)
    out, back = work.stream(), work.stream()
    for cycle in range(_CYCLES):
        chunks = [work.create() for _ in range(4)]
        for place, chunk in enumerate(chunks):
            work.map(address + place * gpu.chunk, chunk)
        work.open(address, count)
        if cycle == 0:
            gpu.write(address, data)
        else:
            gpu.cuda.cuMemcpyHtoDAsync_v2(address, ctypes.addressof(host), count, back)
            gpu.cuda.cuStreamSynchronize(back)
        gpu.cuda.cuMemcpyDtoHAsync_v2(ctypes.addressof(host), address, count, out)
        gpu.cuda.cuStreamSynchronize(out)
        for place, chunk in enumerate(chunks):
            work.unmap(address + place * gpu.chunk)
            work.destroy(chunk)
        if _hash(host.raw) != _hash(data):
            raise Broken(f"bytes changed in cycle {cycle + 1} to the host and back")
        work.create()  # takes the memory that was given back, so that the next chunks are others
    return f"{_CYCLES} cycles to the host and back, hashes are equal"


@dataclasses.dataclass(frozen=True)
class _HostKind:
    """A kind of host memory for chunks. Thimble needs one of the two."""
    where: str
    attribute: str
    other: str  # attribute of the other kind

    def location(self, work):
        """For Workspace.create(). Raises Lost."""
        gpu = work.gpu
        if gpu.attributes[self.attribute]:
            numa = self.attribute == "host_numa_chunks"
            location = gpu.numa_location() if numa else (cu.LOCATION_HOST, 0)
            if not gpu.has_granules(location):
                raise Lost(f"chunks {self.where} are larger than those of the device")
            self._try(work, location)
            return location
        if gpu.attributes[self.other]:
            raise Lost(f"no chunks {self.where}: nothing is lost, for the other kind is there")
        raise Lost(f"no chunks {self.where}: what waits on the host is out of reach of kernels, so "
                   "only blocks whose uses are all announced may leave the device")

    def _try(self, work, location):
        """Containers may forbid what the device can do."""
        try:
            work.destroy(work.create(location=location))
        except cu.CudaError as error:
            raise Lost(f"no chunks {self.where}, though the device has them: {error}; a container "
                       "may need the capability SYS_NICE") from None


_NODE = _HostKind("on a node of the host", "host_numa_chunks", "host_chunks")
_ANYWHERE = _HostKind("on the host without a node", "host_chunks", "host_numa_chunks")


def _host_chunks_by_copies(work, kind):
    """A device chunk and a host chunk share a range and change places."""
    gpu = work.gpu
    location = kind.location(work)
    if all(_takes_of_device(work, location) for _ in range(3)):  # others use the GPU as well
        raise Broken(f"a chunk {kind.where} takes memory of the device")
    first, second = work.create(), work.create(location=location)
    beside = work.side_by_side([first, second])
    data = random_bytes(2 * gpu.chunk, 9)
    gpu.write(beside, data)
    for cycle in range(_CYCLES):
        _exchange(work, beside, first, second, location)
        if _hash(gpu.read(beside, 2 * gpu.chunk)) != _hash(data):
            raise Broken(f"bytes changed in cycle {cycle + 1} between device and host")
        first, second = second, first
    return f"beside device memory in one range; {_CYCLES} moves, hashes are equal"


def _takes_of_device(work, location):
    before = work.gpu.free_bytes()
    resting = work.create(8 * work.gpu.chunk, location)
    taken = before - work.gpu.free_bytes()
    work.destroy(resting)
    return taken >= 8 * work.gpu.chunk


def _exchange(work, address, first, second, location):
    """Two chunks side by side change places. Their bytes stay where they are, by copies over
    scratch addresses."""
    gpu = work.gpu
    size = gpu.chunk
    spare = work.create(location=location)
    scratch = work.side_by_side([spare, first, second])
    for to, source in ((0, 1), (1, 2), (2, 0)):
        gpu.cuda.cuMemcpyAsync(scratch + to * size, scratch + source * size, size, None)
    gpu.cuda.cuCtxSynchronize()
    for place in range(3):
        work.unmap(scratch + place * size)
    work.destroy(spare)
    for place, chunk in enumerate((second, first)):
        work.unmap(address + place * size)
        work.map(address + place * size, chunk)
    work.open(address, 2 * size)


def _host_chunks_by_kernels(work, kind):
    location = kind.location(work)
    mixed = work.side_by_side([work.create(location=place)
                               for place in (None, location, None, location)])
    _kernels_agree(work, mixed, 4 * work.gpu.chunk, seed=10)
    return "a kernel writes chunks of device and host as one block, another reads them"


def pinned_memory(work):
    """Memory of the program that is pinned later, as Thimble's own host memory is."""
    gpu = work.gpu
    count = gpu.chunk
    page = 4096
    buffer = ctypes.create_string_buffer(count + page)
    begin = -(-ctypes.addressof(buffer) // page) * page
    gpu.cuda.cuMemHostRegister_v2(begin, count, 0)
    try:
        address = work.side_by_side([work.create()])
        data = random_bytes(count, 11)
        ctypes.memmove(begin, data, count)
        stream = work.stream()
        gpu.cuda.cuMemcpyHtoDAsync_v2(address, begin, count, stream)
        gpu.cuda.cuStreamSynchronize(stream)
        ctypes.memset(begin, 0, count)
        gpu.cuda.cuMemcpyDtoHAsync_v2(begin, address, count, stream)
        gpu.cuda.cuStreamSynchronize(stream)
        if ctypes.string_at(begin, count) != data:
            raise Broken("bytes changed on the way through memory that was pinned later")
    finally:
        gpu.cuda.cuMemHostUnregister(begin)
    return "copied to and from in a stream"


def pools(work):
    gpu = work.gpu
    if not gpu.attributes["pools"]:
        raise Lost("no memory pools: cuda_malloc_async and XLA's cuda_async cannot run beside "
                   "Thimble; Thimble itself needs none")
    stream = work.stream()
    count = gpu.chunk or 2 << 20
    address = gpu.cuda.number("cuMemAllocAsync", count, stream, kind=ctypes.c_uint64)
    gpu.cuda.cuStreamSynchronize(stream)
    data = random_bytes(count, 12)
    gpu.write(address, data)
    same = gpu.read(address, count) == data
    gpu.cuda.cuMemFreeAsync(address, stream)
    gpu.cuda.cuStreamSynchronize(stream)
    pool = gpu.cuda.number("cuDeviceGetDefaultMemPool", gpu.number, kind=ctypes.c_void_p)
    gpu.cuda.cuMemPoolTrimTo(pool, 0)
    if not same:
        raise Broken("memory of a pool lost bytes")
    return "work beside chunks"


CHECKS = (
    ("stitched memory, by copies", stitched_memory_by_copies),
    ("stitched memory, by kernels", stitched_memory_by_kernels),
    ("swapping", swapping),
    ("chunks on a host node, by copies", lambda work: _host_chunks_by_copies(work, _NODE)),
    ("chunks on a host node, by kernels", lambda work: _host_chunks_by_kernels(work, _NODE)),
    ("chunks on the host, by copies", lambda work: _host_chunks_by_copies(work, _ANYWHERE)),
    ("chunks on the host, by kernels", lambda work: _host_chunks_by_kernels(work, _ANYWHERE)),
    ("pinned memory", pinned_memory),
)
POOLS = (("memory pools", pools),)
