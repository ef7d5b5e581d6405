"""allocator/thimble.h for Python.

A program's figures come from the copy of Thimble that it has loaded already: a library that comes
in as a side effect of looking would change what is being looked at.
"""

import ctypes
import os

OK = 0
OUT_OF_MEMORY = 2
INTERNAL = 4
ABI_VERSION = 1

# Of thimble_stats and the others, in their order; //tests/wheel compares with the header.
STATS = ("in_use", "magazines", "free_small", "free_large", "spare", "reserved", "vacant", "limit",
         "peak_in_use", "peak_reserved", "largest_free", "largest_request", "alias_active",
         "alias_idle", "live_blocks", "allocations", "stitches", "stitch_hits", "out_of_memory",
         "plans", "plans_retired", "plan_seats", "plan_requests", "plan_hits", "plan_repairs",
         "plan_misses", "plan_homeless", "plan_height", "plan_lower_bound", "plan_repeats",
         "plans_stale", "swapped", "swap_out_bytes", "swap_in_bytes",
         "swap_late_bytes", "swap_wait_ns", "swap_out_ns", "swap_in_ns", "swap_goal",
         "swap_host_full")


class Stats(ctypes.Structure):
    """thimble_stats."""
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_uint64) for name in STATS]


LOG_INFO = ("events", "allocations", "peak_in_use", "reserved_at_start", "peak_reserved",
            "reserved_at_peak", "stitches", "complete", "steps", "plan_requests", "plan_hits",
            "plan_repeats", "swap_out_bytes", "swap_in_bytes", "swap_wait_ns", "peak_swapped", "limit",
            "out_of_memory", "duration_ns", "damaged_at", "swapped_at_peak")


class LogInfo(ctypes.Structure):
    """thimble_log_info."""
    _fields_ = ([("struct_size", ctypes.c_size_t)] +
                [(name, ctypes.c_uint64) for name in LOG_INFO] + [("note", ctypes.c_char * 256)])


PLAN_INFO = ("buffers", "height", "lower_bound")


class PlanInfo(ctypes.Structure):
    """thimble_plan_info."""
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_uint64) for name in PLAN_INFO]


SWAP_INFO = ("peak_before", "peak_after", "slowdown_ppm", "bytes_out", "bytes_in", "swaps",
             "bus_out", "bus_in", "peak_doa", "peak_aoa", "peak_wdoa", "peak_swdoa")


class SwapInfo(ctypes.Structure):
    """thimble_swap_info."""
    _fields_ = ([("struct_size", ctypes.c_size_t)] +
                [(name, ctypes.c_uint64) for name in SWAP_INFO] + [("policy", ctypes.c_char * 64)])


BASELINES = ("lru_dp", "lru_dp_recompute", "lru_pp", "lru_pp_recompute", "harmony_dp", "harmony_pp",
             "harmony_dp_prefetch", "harmony_pp_prefetch")
HARMONY_INFO = ("ns", "swap_in_bytes", "swap_out_bytes", "p2p_bytes", "peak_bytes", "compute_ppm",
                "bound_ns", "swap_limit", "forward_packs", "backward_packs", "is_pipeline",
                *(f"{name}_{what}" for name in BASELINES
                  for what in ("ns", "swap_bytes", "compute_ppm")))


class HarmonyInfo(ctypes.Structure):
    """thimble_harmony_info."""
    _fields_ = ([("struct_size", ctypes.c_size_t)] +
                [(name, ctypes.c_uint64) for name in HARMONY_INFO])


REPLAY_INFO = ("reached", "fits", "failed_bytes", "requests", "peak_in_use", "peak_reserved")


class ReplayInfo(ctypes.Structure):
    """thimble_replay_info."""
    _fields_ = ([("struct_size", ctypes.c_size_t)] +
                [(name, ctypes.c_uint64) for name in REPLAY_INFO])


PEAKS = ("in_use", "reserved")


class Peaks(ctypes.Structure):
    """thimble_peaks."""
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_uint64) for name in PEAKS]


class ThimbleError(RuntimeError):
    """Thimble refused a request; the text says which value was wrong and what to do."""


# Name, type of the result, types of the arguments.
_FUNCTIONS = (
    ("thimble_abi_version", ctypes.c_uint32, ()),
    ("thimble_last_error", ctypes.c_char_p, ()),
    ("thimble_options", ctypes.c_char_p, (ctypes.c_void_p,)),
    ("thimble_create", ctypes.c_int, (ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))),
    ("thimble_destroy", None, (ctypes.c_void_p,)),
    ("thimble_check_options", ctypes.c_int, (ctypes.c_char_p, ctypes.c_uint64)),
    ("thimble_parse_size", ctypes.c_int, (ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64))),
    ("thimble_get_stats", ctypes.c_int, (ctypes.c_void_p, ctypes.POINTER(Stats))),
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
    ("thimble_log_convert", ctypes.c_int,
     (ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(LogInfo))),
    ("thimble_replay_log", ctypes.c_int,
     (ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ReplayInfo))),
    ("thimble_report_file", ctypes.c_int,
     (ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(LogInfo))),
    ("thimble_plan_file", ctypes.c_int,
     (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_double, ctypes.c_uint64,
      ctypes.POINTER(PlanInfo))),
    ("thimble_swap_file", ctypes.c_int,
     (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(SwapInfo))),
    ("thimble_harmony_file", ctypes.c_int,
     (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p,
      ctypes.POINTER(HarmonyInfo))),
    ("thimble_snapshot", ctypes.c_int,
     (ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_size_t))),
)


_OTHER_VERSION = ("the library of Thimble that is loaded is of another version than this package: "
                  "install thimble-gpu again")


class Core:
    """The functions of thimble.h, of the core that a library stands on."""

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

    def __getattr__(self, name):
        return getattr(self._library, "thimble_" + name)

    def check(self, status):
        if status != OK:
            raise ThimbleError(self.last_error().decode(errors="replace"))


def installed_core():
    """The core of this package, loaded. For programs that are not being looked at: the command."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
    return Core(ctypes.CDLL(os.path.join(folder, "libthimble.so")))


def loaded(name):
    """Every library of this file name that the process has loaded, in the order of addresses."""
    paths = []
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")
            path = path[1] + path[2]
            if os.path.basename(path) == name and path not in paths:
                paths.append(path)
    return [ctypes.CDLL(path, mode=os.RTLD_NOLOAD) for path in paths]
