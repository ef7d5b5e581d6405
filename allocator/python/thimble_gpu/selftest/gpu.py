"""One GPU, and memory on it that goes when a check ends, however it ends."""

import ctypes
import random

from thimble_gpu.harmony import pci
from thimble_gpu.selftest import cuda as cu
from thimble_gpu.selftest.kernels import Kernels

_TEXT = 128
_CHUNK = 2 << 20  # at least; two granules or more show what happens inside a chunk


class Broken(Exception):
    """The driver does something else than Thimble relies on."""


class Lost(Exception):
    """The driver says that it cannot do this; the text says what Thimble then lacks."""


class Unproven(Exception):
    """All calls succeeded, but on the simulated GPU nothing was computed."""


class Gpu:
    """A GPU in its primary context, current on the thread that makes this object."""

    def __init__(self, cuda, number):
        self.cuda = cuda
        self.number = cuda.number("cuDeviceGet", number)
        self.attributes = {name: self._attribute(code) for name, code in cu.ATTRIBUTES.items()}
        self._context = cuda.number("cuDevicePrimaryCtxRetain", self.number, kind=ctypes.c_void_p)
        cuda.cuCtxSetCurrent(self._context)
        self.kernels = Kernels(cuda, self.attributes["multiprocessors"])
        self.granularity = self._granularity() if self.attributes["virtual_memory"] else 0
        self.chunk = -(-_CHUNK // self.granularity) * self.granularity if self.granularity else 0

    def close(self):
        self.kernels.close()
        self.cuda.cuDevicePrimaryCtxRelease_v2(self.number)

    def describe(self):
        """What the record says about this GPU."""
        name, address = (ctypes.create_string_buffer(_TEXT) for _ in range(2))
        self.cuda.cuDeviceGetName(name, _TEXT, self.number)
        self.cuda.cuDeviceGetPCIBusId(address, _TEXT, self.number)
        return {"number": self.number, "name": name.value.decode(errors="replace"),
                "address": pci.address(address.value.decode()), "granularity": self.granularity,
                "bytes": self.cuda.number("cuDeviceTotalMem_v2", self.number,
                                          kind=ctypes.c_size_t),
                "attributes": self.attributes}

    def free_bytes(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return free.value

    def has_granules(self, location):
        """Whether chunks of the usual size can be made at a location."""
        properties = self.properties(location)
        granularity = self.cuda.number("cuMemGetAllocationGranularity", ctypes.byref(properties), 0,
                                       kind=ctypes.c_size_t)
        return self.chunk % granularity == 0

    def properties(self, location=None, descriptors=False):
        """CUmemAllocationProp of chunks at `location`, a pair; None: on this GPU."""
        return cu.Properties(type=cu.PINNED, handle_types=cu.DESCRIPTOR if descriptors else 0,
                             location=cu.Location(*(location or (cu.LOCATION_DEVICE, self.number))))

    def numa_location(self):
        """The nearest node of the host; a machine without NUMA has node 0."""
        return cu.LOCATION_HOST_NUMA, max(0, self.attributes["host_numa_id"])

    def write(self, address, data):
        self.cuda.cuMemcpyHtoD_v2(address, data, len(data))

    def read(self, address, count):
        data = ctypes.create_string_buffer(count)
        self.cuda.cuMemcpyDtoH_v2(data, address, count)
        return data.raw

    def need_computing(self):
        """Called behind what kernels did."""
        if self.cuda.is_simulated:
            raise Unproven("every call succeeded, but nothing was computed")

    def _attribute(self, code):
        value = ctypes.c_int()
        error = self.cuda.attempt("cuDeviceGetAttribute", ctypes.byref(value), code, self.number)
        return 0 if error else value.value  # an old driver does not know new attributes

    def _granularity(self):
        properties = self.properties()
        return self.cuda.number("cuMemGetAllocationGranularity", ctypes.byref(properties), 0,
                                kind=ctypes.c_size_t)


def random_bytes(count, seed):
    return random.Random(seed).randbytes(count)


class Workspace:
    """What one check makes. `with Workspace(gpu) as work:` takes all of it apart at the end."""

    def __init__(self, gpu):
        self.gpu = gpu
        self._cuda = gpu.cuda
        self._ranges, self._mappings, self._chunks = {}, {}, set()
        self._others = []  # functions that give the rest back, newest last

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        errors = [self._cuda.attempt("cuCtxSynchronize")]
        for give_back in reversed(self._others):
            errors.append(give_back())
        for address, count in self._mappings.items():
            errors.append(self._cuda.attempt("cuMemUnmap", address, count))
        for chunk in self._chunks:
            errors.append(self._cuda.attempt("cuMemRelease", chunk))
        for address, count in self._ranges.items():
            errors.append(self._cuda.attempt("cuMemAddressFree", address, count))
        if kind in (None, Unproven) and any(errors):
            raise Broken(f"to give everything back failed: {next(filter(None, errors))}")

    # Virtual memory. Without sizes: of one chunk of Gpu.chunk bytes.

    def reserve(self, count):
        address = self._cuda.number("cuMemAddressReserve", count, self.gpu.granularity, 0, 0,
                                    kind=ctypes.c_uint64)
        self._ranges[address] = count
        return address

    def release(self, address):
        self._cuda.cuMemAddressFree(address, self._ranges.pop(address))

    def create(self, count=None, location=None, descriptors=False):
        properties = self.gpu.properties(location, descriptors)
        chunk = self._cuda.number("cuMemCreate", count or self.gpu.chunk, ctypes.byref(properties),
                                  0, kind=ctypes.c_uint64)
        self._chunks.add(chunk)
        return chunk

    def adopt(self, chunk):
        """A chunk that came in another way."""
        self._chunks.add(chunk)
        return chunk

    def destroy(self, chunk):
        self._cuda.cuMemRelease(chunk)
        self._chunks.discard(chunk)

    def map(self, address, chunk, count=None):
        count = count or self.gpu.chunk
        self._cuda.cuMemMap(address, count, 0, chunk, 0)
        self._mappings[address] = count

    def unmap(self, address):
        self._cuda.cuMemUnmap(address, self._mappings[address])
        del self._mappings[address]

    def open(self, address, count=None):
        error = self.try_open(address, count or self.gpu.chunk)
        if error:
            raise cu.CudaError(f"cuMemSetAccess: {error}")

    def try_open(self, address, count):
        access = cu.Access(cu.Location(cu.LOCATION_DEVICE, self.gpu.number), cu.READ_WRITE)
        return self._cuda.attempt("cuMemSetAccess", address, count, ctypes.byref(access), 1)

    def is_open(self, address):
        location = cu.Location(cu.LOCATION_DEVICE, self.gpu.number)
        return self._cuda.number("cuMemGetAccess", ctypes.byref(location), address,
                                 kind=ctypes.c_uint64) == cu.READ_WRITE

    def side_by_side(self, chunks):
        """The address of a range in which the chunks are mapped in this order, for use."""
        size = self.gpu.chunk
        address = self.reserve(len(chunks) * size)
        for place, chunk in enumerate(chunks):
            self.map(address + place * size, chunk)
        self.open(address, len(chunks) * size)
        return address

    # The rest.

    def memory(self, count):
        """Of cuMemAlloc."""
        address = self._cuda.number("cuMemAlloc_v2", count, kind=ctypes.c_uint64)
        self._others.append(lambda: self._cuda.attempt("cuMemFree_v2", address))
        return address

    def pinned(self, count):
        """A ctypes buffer in pinned memory of the host."""
        pointer = self._cuda.number("cuMemHostAlloc", count, 0, kind=ctypes.c_void_p)
        self._others.append(lambda: self._cuda.attempt("cuMemFreeHost", pointer))
        return (ctypes.c_char * count).from_address(pointer)

    def stream(self):
        stream = self._cuda.number("cuStreamCreate", 1, kind=ctypes.c_void_p)  # non-blocking
        self._others.append(lambda: self._cuda.attempt("cuStreamDestroy_v2", stream))
        return stream

    def event(self):
        event = self._cuda.number("cuEventCreate", 2, kind=ctypes.c_void_p)  # without a time
        self._others.append(lambda: self._cuda.attempt("cuEventDestroy_v2", event))
        return event
