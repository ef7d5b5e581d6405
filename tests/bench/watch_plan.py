"""Runs a program of tests/workloads on Thimble and says after every step what plans did for it.

    watch_plan.py PROGRAM.py [ARGUMENT…]

One line of JSON per step: what the step held at most, what was reserved for it, how many requests
went to their planned place, how often a stitch or a growth needed the driver.
"""

import json
import os
import runpy
import sys

import thimble_gpu

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "workloads")
COUNTED = ("allocations", "plan_requests", "plan_hits", "plan_repairs", "plan_misses",
           "plan_homeless", "plans", "stitches", "stitch_hits")


class Watch:
    """The figures of one step are those after it without those before it."""

    def __init__(self):
        self.before = dict.fromkeys(COUNTED, 0)

    def note(self):
        stats = thimble_gpu.stats()
        line = {name: stats[name] - self.before[name] for name in COUNTED}
        line.update({name: stats[name] for name in ("peak_in_use", "peak_reserved", "reserved",
                                                    "plan_seats", "plan_height",
                                                    "plan_lower_bound")})
        print(json.dumps(line), file=sys.stderr, flush=True)
        self.before = stats
        thimble_gpu.reset_peak()


def watch(usage_class):
    watcher, note = Watch(), usage_class.note

    def note_both(usage):
        note(usage)
        watcher.note()

    usage_class.note = note_both


def main():
    sys.path.insert(0, FOLDER)
    sys.argv = sys.argv[1:]
    name = "jax_program" if sys.argv[0].startswith("jax_") else "keras_program"
    watch(__import__(name).Usage)
    runpy.run_path(os.path.join(FOLDER, sys.argv[0]), run_name="__main__")


if __name__ == "__main__":
    main()
