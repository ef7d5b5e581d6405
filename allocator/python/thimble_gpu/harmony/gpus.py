"""The GPUs of this machine, from NVIDIA's driver: libcuda.so.1, and libnvidia-ml.so.1 for NVLinks.
Nothing is allocated on them."""

import ctypes
import dataclasses

from thimble_gpu.harmony import pci
from thimble_gpu.harmony.errors import HarmonyError

_TEXT = 128


@dataclasses.dataclass(frozen=True)
class Gpu:
    """A GPU of this machine."""
    address: str
    name: str
    bytes: int


class Gpus:
    """All GPUs that the driver shows, in its order. CUDA_VISIBLE_DEVICES applies."""

    def __init__(self):
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise HarmonyError(f"there is no CUDA driver: {error}") from error
        self._call("cuInit", 0)
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        self.all = [self._describe(number) for number in range(count.value)]

    def can_reach(self, number, other):
        """Whether a GPU can copy from the other one directly, not through the host."""
        answer = ctypes.c_int()
        self._call("cuDeviceCanAccessPeer", ctypes.byref(answer), number, other)
        return bool(answer.value)

    def nvlinks(self):
        """Bytes per second each way, by pair of numbers; and "", or the reason they are unknown."""
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as error:
            return {}, f"NVLinks are unknown: {error}"
        status = library.nvmlInit_v2()
        if status != 0:
            return {}, f"NVLinks are unknown: nvmlInit_v2 failed ({status})"
        try:
            return _Nvlinks(library, [gpu.address for gpu in self.all]).find(), ""
        except AttributeError as error:
            return {}, f"NVLinks are unknown, because the driver is too old: {error}"
        finally:
            library.nvmlShutdown()

    def _describe(self, number):
        address, name = (ctypes.create_string_buffer(_TEXT) for _ in range(2))
        size = ctypes.c_size_t()
        self._call("cuDeviceGetPCIBusId", address, _TEXT, number)
        self._call("cuDeviceGetName", name, _TEXT, number)
        self._call("cuDeviceTotalMem_v2", ctypes.byref(size), number)
        return Gpu(pci.address(address.value.decode()), name.value.decode(errors="replace"),
                   size.value)

    def _call(self, name, *arguments):
        status = getattr(self._cuda, name)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(status, ctypes.byref(text))
            reason = text.value.decode(errors="replace") if text.value else "an unknown error"
            raise HarmonyError(f"{name} of the CUDA driver failed: {reason} ({status})")


class _PciInfo(ctypes.Structure):
    """nvmlPciInfo_t."""
    _fields_ = [("old_address", ctypes.c_char * 16)] + [
        (name, ctypes.c_uint) for name in ("domain", "bus", "device", "id", "subsystem")] + [
            ("address", ctypes.c_char * 32)]


class _Field(ctypes.Structure):
    """nvmlFieldValue_t; of its union of values, the member used for speeds."""
    _fields_ = [("id", ctypes.c_uint), ("scope", ctypes.c_uint), ("time", ctypes.c_longlong),
                ("latency", ctypes.c_longlong), ("kind", ctypes.c_uint), ("status", ctypes.c_uint),
                ("value", ctypes.c_uint), ("rest", ctypes.c_uint)]


class _Nvlinks:
    """Asks NVML for the other end of each NVLink of each GPU."""

    _MOST = 18  # links of a GPU: NVML_NVLINK_MAX_LINKS
    _SWITCH = 2  # NVML_NVLINK_DEVICE_TYPE_SWITCH
    # NVML_FI_DEV_NVLINK_GET_SPEED and, on older drivers, NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON:
    # decimal megabytes per second each way.
    _SPEEDS = (164, 90)

    def __init__(self, library, addresses):
        self._library, self._addresses = library, addresses

    def find(self):
        pairs, to_switches = {}, {}
        for number, address in enumerate(self._addresses):
            handle = ctypes.c_void_p()
            if self._library.nvmlDeviceGetHandleByPciBusId_v2(address.encode(),
                                                              ctypes.byref(handle)) != 0:
                continue
            for link in self._active(handle):
                speed = self._speed(handle, link)
                other = self._other_end(handle, link)
                if other == self._SWITCH:
                    to_switches[number] = to_switches.get(number, 0) + speed
                elif other in self._addresses:
                    pair = number, self._addresses.index(other)
                    if pair[0] < pair[1]:  # the other end reports the same link again
                        pairs[pair] = pairs.get(pair, 0) + speed
        # Through switches, GPUs reach each other with all their links.
        for number in to_switches:
            for other in to_switches:
                if number < other:
                    pairs[number, other] = min(to_switches[number], to_switches[other])
        return {pair: speed for pair, speed in pairs.items() if speed}

    def _active(self, handle):
        for link in range(self._MOST):
            state = ctypes.c_uint()
            if (self._library.nvmlDeviceGetNvLinkState(handle, link, ctypes.byref(state)) == 0 and
                    state.value):
                yield link

    def _other_end(self, handle, link):
        """An address, or _SWITCH; None if it is unknown."""
        kind, info = ctypes.c_uint(), _PciInfo()
        if (self._library.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link, ctypes.byref(kind)) == 0
                and kind.value == self._SWITCH):
            return self._SWITCH
        if self._library.nvmlDeviceGetNvLinkRemotePciInfo_v2(handle, link, ctypes.byref(info)) != 0:
            return None
        return pci.address(info.address.decode())

    def _speed(self, handle, link):
        for name in self._SPEEDS:
            field = _Field(id=name, scope=link)
            if (self._library.nvmlDeviceGetFieldValues(handle, 1, ctypes.byref(field)) == 0 and
                    field.status == 0 and field.value):
                return field.value * 1_000_000
        return 0
