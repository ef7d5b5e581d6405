"""Runs one program of jax_programs.py: `run_jax.py NAME`.

The simulated GPU computes nothing, so numbers mean nothing. The answer is the number of buffers
that the program requested, and their sizes in order.
"""

import hashlib
import os
import re
import sys

import jax_programs
import recording

CALLS = "OUTSIDE_CALLS"  # log of the simulated driver, where XLA asks it for every buffer
EVENTS = "OUTSIDE_EVENTS"  # Thimble's event log


def requested():
    """Sizes of all buffers so far, in order."""
    if CALLS in os.environ:
        with open(os.environ[CALLS], encoding="utf-8") as file:
            return [int(size) for size in
                    re.findall(r" cuMemAllocFromPoolAsync size=(\d+)", file.read())]
    import thimble_gpu
    from thimble_gpu import columns
    thimble_gpu.stop_log()
    log = columns.Columns(os.environ[EVENTS])
    return [size for _, size, _ in log.blocks()]


def main():
    name, = sys.argv[1:]
    recorder = recording.Recorder()
    recorder.start(name)
    jax_programs.PROGRAMS[name]()
    sizes = requested()
    digest = hashlib.sha256(str(sizes).encode()).hexdigest()[:16]
    recorder.test(name, {"buffers": len(sizes), "bytes": sum(sizes), "in order": digest},
                  sizes=sizes)
    recorder.end(**recording.arena_figures())


if __name__ == "__main__":
    main()
