"""Summarizes the event logs of a run, and what TensorFlow's own allocator would have needed."""

import os
import re
import time

from thimble_gpu import abi
from thimble_gpu import bfc
from thimble_gpu import conf
from thimble_gpu import failure
from thimble_gpu import offline
from thimble_gpu import progress
from thimble_gpu import text

MOST_DEVICES = 8  # in a summary
MOST_SECONDS = 60  # for all comparisons together
DAMAGED = 3  # exit status if only the sound part of a damaged log was used

NOTHING = ("the program took no memory from Thimble: it did not compute with TensorFlow or JAX on "
           "a GPU, or Thimble could not serve it. `thimble doctor` shows which")


NAME = re.compile(r"(\d+)\.(\d+)\.log(?:\.(\d+))?")


def figures(path, trace=None):
    """Returns the figures of a log by name, and writes it as a text trace. Raises ThimbleError."""
    return with_shares(offline.run("log", log=path, trace=trace))


def with_shares(answer):
    """Returns the figures of a log with the fragmentation, in percent."""
    on_device = answer["peak_in_use"] - answer["swapped_at_peak"]
    unused = 1 - on_device / max(answer["reserved_at_peak"], 1)
    return {**answer, "fragmentation": round(100 * max(unused, 0), 1)}


class Log:
    """One device of one process: PROCESS.COUNT.log, and .DEVICE for all but the first."""

    def __init__(self, path):
        parts = NAME.fullmatch(os.path.basename(path))
        self.path = path
        self.process, self.count, self.device = (int(part or 0) for part in parts.groups())
        self.__dict__.update(figures(path, path + ".trace"))


def read(folder):
    """Returns the logs with at least one allocation, and the errors of unreadable logs."""
    logs, errors = [], []
    for name in filter(NAME.fullmatch, sorted(os.listdir(folder))):
        try:
            logs.append(Log(os.path.join(folder, name)))
        except abi.ThimbleError as error:
            errors.append(str(error))
    logs.sort(key=lambda log: (log.process, log.device, log.count))
    return [log for log in logs if log.allocations > 0], errors


def place(log, is_cpu, several):
    """Names the device, and its process if there are several."""
    device = "CPU" if is_cpu else f"GPU {log.device}"
    return f"{device} of process {log.process}" if several else device


def describe(log):
    """Returns one line of figures."""
    if log.reserved_at_start >= log.peak_reserved > 0:
        reserved = f"{text.size(log.peak_reserved)} reserved in advance"
    else:
        reserved = (f"{text.size(log.peak_reserved)} reserved, fragmentation "
                    f"{log.fragmentation:.1f} %")
    return (f"{log.place}: peak {text.size(log.peak_in_use)} in use, {reserved}, {log.stitches} blocks "
            f"stitched, {log.allocations} allocations")


def describe_plan(requests, hits, repeats):
    """Returns what plans did, on one line; "" if there was no plan."""
    if requests == 0:
        return ""
    return (f"plans: {100 * hits / requests:.2f} % of {requests} requests at their planned place, "
            f"{100 * repeats / requests:.2f} % at the same address as in the previous step")


def describe_swap(out, back, most, wait_ns):
    """Returns what was swapped and its cost, on one line; "" if nothing was swapped."""
    if out == 0:
        return ""
    return (f"swapped: {text.size(out)} out, {text.size(back)} back in, {text.size(most)} on the "
            f"host at most; ops waited {wait_ns / 1e9:.1f} s for copies")


class Comparison:
    """What BFC would have needed, in bytes (None: unknown), and a note: how much more, or why it is
    unknown."""

    def __init__(self, needed, note):
        self.bytes = needed
        self.note = note

    def __str__(self):
        if self.bytes is None:
            return ("it is unknown what TensorFlow's own allocator (BFC) would have needed: "
                    f"{self.note}")
        return (f"TensorFlow's own allocator (BFC) would have needed {text.size(self.bytes)}, "
                f"{self.note}")


def compare(log_figures, trace, seconds):
    """Compares BFC on a text trace with the figures of the log behind it."""
    try:
        with progress.Progress("computing what TensorFlow's own allocator would have needed"):
            needed = bfc.fit(trace, seconds)
    except bfc.Unknown as reason:
        return Comparison(None, str(reason))
    in_advance = log_figures["reserved_at_start"] > 0
    own = log_figures["peak_in_use" if in_advance else "reserved_at_peak"]
    if needed <= own + bfc.STEP:
        return Comparison(needed, "no more")
    return Comparison(needed, f"{100 * (needed / own - 1):.1f} % more than was "
                      f"{'in use' if in_advance else 'reserved'} at the peak")


def compare_log(path, log_figures, seconds, folder):
    """Compares BFC with a log; writes the trace to `folder`."""
    if log_figures["allocations"] == 0:
        return Comparison(None, "the log has no allocations")
    if seconds == 0:
        return Comparison(None, "the comparison was skipped")
    trace = os.path.join(folder, "trace")
    try:
        offline.run("log", log=path, trace=trace)
    except abi.ThimbleError as error:
        return Comparison(None, str(error))
    return compare(log_figures, trace, seconds)


def explain(log, requests, options):
    """Returns lines about the request that the program failed with, if it ran out of memory."""
    failed = requests.get((log.process, log.device))
    return failure.describe(log.path, failed, options) if failed else ()


def write(folder, options, failed):
    """Writes the summary of a run with these options to stderr. Returns the logs in it."""
    is_cpu = ("device", "cpu") in conf.entries(options)
    requests = failure.read(folder) if failed else {}
    logs, errors = read(folder)
    for error in errors:
        text.say(f"cannot use a log of this run: {error}")
    if not logs and not errors:
        text.say(NOTHING)
    several = len({log.process for log in logs}) > 1
    deadline = time.monotonic() + MOST_SECONDS
    for log in logs[:MOST_DEVICES]:
        log.place = place(log, is_cpu, several)
        text.say(describe(log))
        plan = describe_plan(log.plan_requests, log.plan_hits, log.plan_repeats)
        swap = describe_swap(log.swap_out_bytes, log.swap_in_bytes, log.peak_swapped,
                             log.swap_wait_ns)
        for note in filter(None, (plan, swap, log.note, *explain(log, requests, options))):
            text.say("  " + note)
        log.comparison = compare(vars(log), log.path + ".trace", deadline - time.monotonic())
        text.say(f"  {log.comparison}")
    if len(logs) > MOST_DEVICES:
        text.say(f"and {len(logs) - MOST_DEVICES} more devices")
    return logs[:MOST_DEVICES]
