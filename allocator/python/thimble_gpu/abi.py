"""Python bindings of allocator/thimble.h.

A program's figures come from the copy of Thimble that it has already loaded. Inspecting a program
must not load a library, because that would change what is inspected.
"""

import ctypes
import os

OK = 0
OUT_OF_MEMORY = 2
INTERNAL = 4
ABI_VERSION = 2

PEAKS = ("in_use", "reserved")


class Peaks(ctypes.Structure):
    """thimble_peaks."""
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_uint64) for name in PEAKS]


class ThimbleError(RuntimeError):
    """Thimble refused a request. The text names the wrong value and what to do."""

    def __init__(self, text, status=None):
        super().__init__(text)
        self.status = status  # thimble_status, if it came from the library


_TELL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)  # thimble_tell

# Name, type of the result, types of the arguments.
_FUNCTIONS = (
    ("thimble_abi_version", ctypes.c_uint32, ()),
    ("thimble_last_error", ctypes.c_char_p, ()),
    ("thimble_options", ctypes.c_char_p, (ctypes.c_void_p,)),
    ("thimble_create", ctypes.c_int, (ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))),
    ("thimble_destroy", None, (ctypes.c_void_p,)),
    ("thimble_read_options", ctypes.c_int,
     (ctypes.c_char_p, ctypes.c_char_p, _TELL, ctypes.c_void_p)),
    ("thimble_parse_size", ctypes.c_int, (ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64))),
    ("thimble_stats_names", ctypes.c_char_p, ()),
    ("thimble_get_stats", ctypes.c_int, (ctypes.c_void_p, ctypes.c_void_p)),
    ("thimble_reset_peaks", ctypes.c_int, (ctypes.c_void_p,)),
    ("thimble_peak_begin", ctypes.c_int, (ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64))),
    ("thimble_peak_read", ctypes.c_int,
     (ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(Peaks))),
    ("thimble_peak_end", ctypes.c_int, (ctypes.c_void_p, ctypes.c_uint64)),
    ("thimble_trim", ctypes.c_int,
     (ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64))),
    ("thimble_set_limit", ctypes.c_int, (ctypes.c_void_p, ctypes.c_uint64)),
    ("thimble_log_start", ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p)),
    ("thimble_log_stop", ctypes.c_int, (ctypes.c_void_p,)),
    ("thimble_snapshot", ctypes.c_int,
     (ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_size_t))),
)


_OTHER_VERSION = ("the loaded Thimble library does not have the version of this package: "
                  "install thimble-gpu again")


class Core:
    """The functions of thimble.h, found through a library that is linked with the core."""

    def __init__(self, library):
        self._library = library
        for name, result, arguments in _FUNCTIONS:
            function = getattr(library, name, None)
            if function is None:
                raise ThimbleError(_OTHER_VERSION)
            function.restype = result
            function.argtypes = arguments
        if self.abi_version() != ABI_VERSION:
            raise ThimbleError(_OTHER_VERSION)

    def stats(self, arena):
        """Returns thimble_stats of an arena as a dictionary."""
        names = self.stats_names().decode().split()
        numbers = (ctypes.c_uint64 * (1 + len(names)))()
        numbers[0] = ctypes.sizeof(numbers)  # struct_size
        self.check(self.get_stats(arena, numbers))
        return dict(zip(names, numbers[1:]))

    def read_conf(self, text, own=""):
        """Returns what options say and imply, as pairs of key and value, and the status. `own`
        lists options of fronts with their values, as thimble_read_options() takes them."""
        pairs = []
        status = self.read_options(os.fsencode(text), own.encode(), _TELL(
            lambda _, key, value: pairs.append((os.fsdecode(key), os.fsdecode(value)))), None)
        return pairs, status

    def __getattr__(self, name):
        return getattr(self._library, "thimble_" + name)

    def check(self, status):
        if status != OK:
            raise ThimbleError(self.last_error().decode(errors="replace"), status)


def installed(name):
    """Loads a library of this package."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
    return ctypes.CDLL(os.path.join(folder, name))


def installed_core():
    """Loads the core of this package. For the command, which inspects no program of its own
    process."""
    return Core(installed("libthimble.so"))


def loaded(name):
    """Returns every library of this file name that the process has loaded, in the order of
    addresses."""
    paths = []
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")
            path = path[1] + path[2]
            if os.path.basename(path) == name and path not in paths:
                paths.append(path)
    return [ctypes.CDLL(path, mode=os.RTLD_NOLOAD) for path in paths]
