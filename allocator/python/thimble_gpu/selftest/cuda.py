"""libcuda.so.1 by ctypes: the functions that Thimble and the self-test call, with their errors."""

import contextlib
import ctypes

# One letter per argument. An address or a chunk is a number (a), everything else that points is p.
_TYPES = {"p": ctypes.c_void_p, "a": ctypes.c_uint64, "z": ctypes.c_size_t, "i": ctypes.c_int,
          "u": ctypes.c_uint}
_FUNCTIONS = {
    "cuInit": "u", "cuDriverGetVersion": "p", "cuGetErrorName": "ip",
    "cuDeviceGetCount": "p", "cuDeviceGet": "pi", "cuDeviceGetName": "pii",
    "cuDeviceGetAttribute": "pii", "cuDeviceTotalMem_v2": "pi", "cuDeviceGetPCIBusId": "pii",
    "cuDevicePrimaryCtxRetain": "pi", "cuDevicePrimaryCtxRelease_v2": "i",
    "cuCtxSetCurrent": "p", "cuCtxSynchronize": "",
    "cuMemGetInfo_v2": "pp", "cuMemAlloc_v2": "pz", "cuMemFree_v2": "a",
    "cuMemHostAlloc": "pzu", "cuMemFreeHost": "p",
    "cuMemHostRegister_v2": "pzu", "cuMemHostUnregister": "p",
    "cuMemGetAllocationGranularity": "ppi",
    "cuMemAddressReserve": "pzzaa", "cuMemAddressFree": "az",
    "cuMemCreate": "pzpa", "cuMemRelease": "a",
    "cuMemMap": "azzaa", "cuMemUnmap": "az",
    "cuMemSetAccess": "azpz", "cuMemGetAccess": "ppa",
    "cuMemExportToShareableHandle": "paia", "cuMemImportFromShareableHandle": "ppi",
    "cuMemcpyHtoD_v2": "apz", "cuMemcpyDtoH_v2": "paz",
    "cuMemcpyHtoDAsync_v2": "apzp", "cuMemcpyDtoHAsync_v2": "pazp", "cuMemcpyAsync": "aazp",
    "cuMemsetD8_v2": "auz",
    "cuMemAllocAsync": "pzp", "cuMemFreeAsync": "ap",
    "cuDeviceGetDefaultMemPool": "pi", "cuMemPoolTrimTo": "pz",
    "cuStreamCreate": "pu", "cuStreamDestroy_v2": "p", "cuStreamSynchronize": "p",
    "cuStreamWaitEvent": "ppu",
    "cuEventCreate": "pu", "cuEventDestroy_v2": "p", "cuEventRecord": "pp", "cuEventQuery": "p",
    "cuEventSynchronize": "p",
    "cuModuleLoadData": "pp", "cuModuleUnload": "p", "cuModuleGetFunction": "ppp",
    "cuLaunchKernel": "puuuuuuuppp",
}

NOT_READY = "CUDA_ERROR_NOT_READY"

# Of cuda.h.
LOCATION_DEVICE, LOCATION_HOST, LOCATION_HOST_NUMA = 1, 2, 3
PINNED = 1  # CU_MEM_ALLOCATION_TYPE_PINNED
DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
READ_WRITE = 3  # CU_MEM_ACCESS_FLAGS_PROT_READWRITE
ATTRIBUTES = {
    "multiprocessors": 16, "capability_major": 75, "capability_minor": 76,
    "virtual_memory": 102, "descriptors": 103, "pools": 115,
    "host_numa_id": 134, "host_numa_chunks": 141, "host_pools": 144, "host_chunks": 145,
}


class Location(ctypes.Structure):
    """CUmemLocation."""
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Properties(ctypes.Structure):
    """CUmemAllocationProp."""
    _fields_ = [("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location", Location),
                ("windows", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]


class Access(ctypes.Structure):
    """CUmemAccessDesc."""
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


class CudaError(Exception):
    """A call failed that must not fail."""


class NoDriver(Exception):
    """There is no driver, or it finds no GPU."""


class Cuda:
    """The driver. Its functions are methods that raise CudaError."""

    def __init__(self):
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise NoDriver(f"there is no CUDA driver: {error}") from None
        self._provoke = getattr(self._library, "simgpu_provoke", None)
        error = self.attempt("cuInit", 0)
        if error:
            raise NoDriver(f"the CUDA driver finds no GPU: cuInit: {error}")

    @property
    def is_simulated(self):
        """Whether this is the simulated GPU (tests/simgpu), which computes nothing."""
        return self._provoke is not None

    def attempt(self, name, *arguments):
        """Returns the name of the error; "" after success."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            return f"the driver is too old: it has no {name}"
        function.argtypes = [_TYPES[letter] for letter in _FUNCTIONS[name]]
        status = function(*arguments)
        if status == 0:
            return ""
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(status, ctypes.byref(text))
        return text.value.decode() if text.value else f"error {status}"

    def __getattr__(self, name):
        if name not in _FUNCTIONS:
            raise AttributeError(name)

        def call(*arguments):
            error = self.attempt(name, *arguments)
            if error:
                raise CudaError(f"{name}: {error}")
        return call

    @contextlib.contextmanager
    def provoking(self):
        """What this thread calls now is wrong on purpose."""
        if self._provoke:
            self._provoke(1)
        try:
            yield
        finally:
            if self._provoke:
                self._provoke(0)

    def number(self, name, *arguments, kind=ctypes.c_int):
        """Calls a function whose first argument receives its answer; returns that."""
        answer = kind()
        getattr(self, name)(ctypes.byref(answer), *arguments)
        return answer.value
