"""Measures what swap:auto costs a training step that fits: the CPU device with and without it, in
turn.

    bazel run -c opt //tests/tf_plugin:swap_time -- [ROUNDS]

Like step_time.py, prints milliseconds of a step by the clock and of processor time, and the ratio
of the latter. hook_time.cc measures one op.
"""

import json
import statistics
import sys

from tests.tf_plugin import step_time

CONF = "device:cpu,limit:4GiB"


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for name in ("cnn", "transformer"):
        seconds = {"plain": [], "swap": []}
        for _ in range(rounds):
            seconds["plain"].append(step_time.measured(name, THIMBLE_CONF=CONF))
            seconds["swap"].append(step_time.measured(name, THIMBLE_CONF=CONF + ",swap:auto"))
        line = {"model": name}
        for who, times in seconds.items():
            clock, processor = zip(*times)
            line[who + "_ms"] = round(1000 * statistics.median(clock), 2)
            line[who + "_processor_ms"] = round(1000 * statistics.median(processor), 2)
        line["ratio"] = round(sum(p for _, p in seconds["swap"]) /
                              sum(p for _, p in seconds["plain"]), 3)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
