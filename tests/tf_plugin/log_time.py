"""Measures what an event log costs a training step on the CPU device.

    bazel run -c opt //tests/tf_plugin:log_time -- [ROUNDS]

Two processes that do the same differ by some percent for their whole life, because their memory
lies elsewhere. So one process trains while its log is off, on and off again in turn. With
swap:watch, as under `thimble run`, a log also has every op and its blocks; swap_time.py measures
what watching itself costs. One JSON object per model and setting: milliseconds of a step without a
log, by the clock and of processor time; events of a step; and medians over rounds of two ratios,
again by the clock and of processor time. `log` compares parts with and without a log; `same`
compares the two parts without one, and so shows the noise.
"""

import ctypes
import json
import os
import statistics
import sys
import tempfile

from tests.tf_plugin import forked
from tests.tf_plugin import step_time

STEPS = 10
SETTLE = 2  # steps between a change and its measurement
RECORD_BYTES = 48  # allocator/observe/log_format.h
CPU = -1  # THIMBLE_TF_CPU


class Log:
    """The event log of the CPU device's arena."""

    def __init__(self, path):
        self.path = path
        plugin = ctypes.CDLL(forked.PLUGIN)
        plugin.thimble_tf_arena.restype = ctypes.c_void_p
        self.arena = ctypes.c_void_p(plugin.thimble_tf_arena(CPU))
        self.core = ctypes.CDLL(forked.loaded("libthimble.so"))

    def start(self):
        assert self.core.thimble_log_start(self.arena, self.path.encode()) == 0

    def stop(self):
        assert self.core.thimble_log_stop(self.arena) == 0

    def events(self):
        return os.path.getsize(self.path) // RECORD_BYTES


def in_turn(name, rounds, path):
    """A pair (clock, processor) of seconds per round for each part, and events of a step."""
    step = step_time.warm_step(name)
    log = Log(path)
    seconds = {"off": [], "on": [], "off again": []}
    events = 0
    for turn in range(rounds):
        parts = list(seconds)
        for part in parts[turn % 3:] + parts[:turn % 3]:
            if part == "on":
                log.start()
            for _ in range(SETTLE):
                step()
            seconds[part].append(step_time.timed(step, STEPS))
            if part == "on":
                log.stop()
                events = log.events() // (SETTLE + STEPS)
    return seconds, events


def line(name, conf, seconds, events):
    result = {"model": name, "conf": conf}
    for index, unit in enumerate(("clock", "processor")):
        off, on, again = ([times[index] for times in part] for part in seconds.values())
        result[unit + "_ms"] = round(1000 * statistics.median(off), 2)
        result["log_" + unit] = round(statistics.median(
            2 * b / (a + c) for a, b, c in zip(off, on, again)), 4)
        result["same_" + unit] = round(statistics.median(c / a for a, c in zip(off, again)), 4)
    return {**result, "events": events}


def measured(name, conf, rounds):
    with tempfile.TemporaryDirectory() as folder:
        case = forked.run(in_turn, name, rounds, os.path.join(folder, "log"), THIMBLE_CONF=conf)
    if not isinstance(case.answer, tuple):
        sys.exit(str(case))
    return case.answer


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for name in ("cnn", "transformer"):
        for conf in ("device:cpu", "device:cpu,swap:watch"):
            print(json.dumps(line(name, conf, *measured(name, conf, rounds))), flush=True)


if __name__ == "__main__":
    main()
