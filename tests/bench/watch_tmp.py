"""Runs a program of tests/workloads with plans, and says after every step what they did for it.

    ./dev sim --memory 40GiB -- python tests/bench/watch_plan.py gpt2.py --steps 12

  planned   requests at their planned place, of those for which a plan was asked
  repaired  of these, the ones that moved there in this step
  stitched  blocks that were stitched; every one that is new calls the driver
  peak      most MiB in use during the step
  reserved  most that was taken from the device, divided by that
  after     MiB taken when the step is over
"""

import os
import runpy
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "workloads")
SETTINGS = {"TF_GPU_ALLOCATOR": "thimble", "TF_FORCE_GPU_ALLOW_GROWTH": "true",
            "XLA_PYTHON_CLIENT_ALLOCATOR": "thimble", "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            "THIMBLE_CONF": "plan:auto", "TF_CPP_MIN_LOG_LEVEL": "2"}
COUNTED = ("plan_misses","plan_homeless","plans","plans_retired","plan_requests", "plan_hits", "plan_repairs", "stitches", "stitch_hits")
MIB = 1 << 20


class Watch:
    """The figures of one step are those after it without those before it."""

    def __init__(self, thimble_gpu):
        self.thimble_gpu = thimble_gpu
        self.before = dict.fromkeys(COUNTED, 0)
        self.steps = 0
        print("step          planned repaired stitched  (new)     peak  reserved     after",
              file=sys.stderr)

    def note(self):
        stats = self.thimble_gpu.stats()
        now = {name: stats[name] - self.before[name] for name in COUNTED}
        planned = f"{now['plan_hits']} of {now['plan_requests']}"
        new = now["stitches"] - now["stitch_hits"]
        print({k: now[k] for k in ('plan_misses','plan_homeless','plans','plans_retired')}, stats['plan_height']/MIB, stats['plan_lower_bound']/MIB,file=sys.stderr); print(f"{self.steps:4} {planned:>16} {now['plan_repairs']:8} {now['stitches']:8} {new:6} "
              f"{stats['peak_in_use'] / MIB:8.1f} "
              f"{stats['peak_reserved'] / stats['peak_in_use']:9.4f} "
              f"{stats['reserved'] / MIB:9.1f}", file=sys.stderr, flush=True)
        self.before = stats
        self.steps += 1
        self.thimble_gpu.reset_peak()


def watch(usage_class, watcher):
    note = usage_class.note

    def note_both(usage):
        note(usage)
        watcher.note()

    usage_class.note = note_both


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    if not SETTINGS.keys() <= os.environ.keys():
        # JAX's are read when Python starts.
        environment = {**SETTINGS, **os.environ}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    import thimble_gpu
    sys.path.insert(0, FOLDER)
    sys.argv = sys.argv[1:]
    name = "jax_program" if sys.argv[0].startswith("jax_") else "keras_program"
    watch(__import__(name).Usage, Watch(thimble_gpu))
    runpy.run_path(os.path.join(FOLDER, sys.argv[0]), run_name="__main__")


if __name__ == "__main__":
    main()
