"""What the event logs of a run tell, and what TensorFlow's own allocator would have needed."""

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

MOST_DEVICES = 8  # that are written about
MOST_SECONDS = 60  # that the comparisons may take together
DAMAGED = 3  # the status of commands that have told what is sound of a damaged log

NOTHING = ("the program took no memory from Thimble: it did not compute with TensorFlow or JAX on "
           "a GPU, or Thimble could not serve it. `thimble doctor` finds out")


NAME = re.compile(r"(\d+)\.(\d+)\.log(?:\.(\d+))?")


def figures(path, trace=None):
    """What a log tells, by name; the log as a text trace. Raises ThimbleError."""
    return with_shares(offline.run("log", log=path, trace=trace))


def with_shares(told):
    """What a log tells, and what follows from it: fragmentation, in percent."""
    on_device = told["peak_in_use"] - told["swapped_at_peak"]
    unused = 1 - on_device / max(told["reserved_at_peak"], 1)
    return {**told, "fragmentation": round(100 * max(unused, 0), 1)}


class Log:
    """One device of one process: PROCESS.COUNT.log, and .DEVICE for all but the first."""

    def __init__(self, path):
        parts = NAME.fullmatch(os.path.basename(path))
        self.path = path
        self.process, self.count, self.device = (int(part or 0) for part in parts.groups())
        self.__dict__.update(figures(path, path + ".trace"))


def read(folder):
    """The logs in which something was allocated, and what is wrong with the others."""
    logs, errors = [], []
    for name in filter(NAME.fullmatch, sorted(os.listdir(folder))):
        try:
            logs.append(Log(os.path.join(folder, name)))
        except abi.ThimbleError as error:
            errors.append(str(error))
    logs.sort(key=lambda log: (log.process, log.device, log.count))
    return [log for log in logs if log.allocations > 0], errors


def place(log, is_cpu, several):
    """Whose figures they are."""
    device = "CPU" if is_cpu else f"GPU {log.device}"
    return f"{device} of process {log.process}" if several else device


def describe(log):
    """One line of figures."""
    if log.reserved_at_start >= log.peak_reserved > 0:
        reserved = f"{text.size(log.peak_reserved)} reserved in advance"
    else:
        reserved = (f"{text.size(log.peak_reserved)} reserved, fragmentation "
                    f"{log.fragmentation:.1f} %")
    return (f"{log.place}: peak {text.size(log.peak_in_use)} in use, {reserved}, {log.stitches} blocks "
            f"stitched, {log.allocations} allocations")


def describe_plan(requests, hits, repeats):
    """What plans did, on a line; "" if there was none."""
    if requests == 0:
        return ""
    return (f"plans: {100 * hits / requests:.2f} % of {requests} requests at their planned place, "
            f"{100 * repeats / requests:.2f} % at the same address as the time before")


def describe_swap(out, back, most, wait_ns):
    """What was swapped and what it cost, on a line; "" if nothing was."""
    if out == 0:
        return ""
    return (f"swapped: {text.size(out)} out, {text.size(back)} back in, {text.size(most)} on the "
            f"host at most; ops waited {wait_ns / 1e9:.1f} s for copies")


class Comparison:
    """What BFC would have needed, in bytes (None: not known), and a note: how much more, or why."""

    def __init__(self, needed, note):
        self.bytes = needed
        self.note = note

    def __str__(self):
        if self.bytes is None:
            return ("what TensorFlow's own allocator (BFC) would have needed is not known: "
                    f"{self.note}")
        return (f"TensorFlow's own allocator (BFC) would have needed {text.size(self.bytes)}, "
                f"{self.note}")


def compare(told, trace, seconds):
    """BFC on a text trace, against the figures of the log that it was made from."""
    try:
        with progress.Progress("what would TensorFlow's own allocator have needed?"):
            needed = bfc.fit(trace, seconds)
    except bfc.Unknown as reason:
        return Comparison(None, str(reason))
    in_advance = told["reserved_at_start"] > 0
    own = told["peak_in_use"] if in_advance else told["reserved_at_peak"]
    if needed <= own + bfc.STEP:
        return Comparison(needed, "no more")
    return Comparison(needed, f"{100 * (needed / own - 1):.1f} % more than was "
                      f"{'in use' if in_advance else 'reserved'} at the peak")


def compare_log(path, told, seconds, folder):
    """The same for a log; `folder` is for the trace."""
    if told["allocations"] == 0 or seconds == 0:
        return Comparison(None, "it was not asked" if told["allocations"] else "there is nothing")
    trace = os.path.join(folder, "trace")
    try:
        offline.run("log", log=path, trace=trace)
    except abi.ThimbleError as error:
        return Comparison(None, str(error))
    return compare(told, trace, seconds)


def explain(log, requests, options):
    """Lines about the request that the program failed with, if that was for memory."""
    failed = requests.get((log.process, log.device))
    return failure.describe(log.path, failed, options) if failed else ()


def write(folder, options, failed):
    """The summary of a run with these options, on stderr. The logs that it is about."""
    is_cpu = ("device", "cpu") in conf.entries(options)
    requests = failure.read(folder) if failed else {}
    logs, errors = read(folder)
    for error in errors:
        text.say(f"a log of this run cannot be used: {error}")
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
        text.say(f"and {len(logs) - MOST_DEVICES} devices more")
    return logs[:MOST_DEVICES]
