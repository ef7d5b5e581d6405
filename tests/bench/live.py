"""The smallest simulated GPU on which stock TensorFlow and stock JAX still train, by allocator.

For every program of the list and every allocator: the smallest memory, in steps of one percent of
what the program has in use at its peak, with which the whole program runs. A run is a new process
on the simulated GPU (tests/simgpu), so a figure holds for the real framework and for everything it
does with memory; nothing is replayed. Allocators that grow are also measured on a device that is
much too large: what they took from it at most, divided by the peak in use.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile

MIB = 1 << 20
AMPLE = 16 << 30
SECONDS = 300  # of one run
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "workloads")

# TensorFlow keeps some of a device for itself, more on larger ones; JAX takes three quarters. Both
# are turned off, so that a device of N bytes is N bytes to every allocator. JAX compiles a program
# once for all its runs: that takes a minute or two, a run takes seconds.
COMMON = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_DEVICE_MIN_SYS_MEMORY_IN_MB": "0",
    "XLA_CLIENT_MEM_FRACTION": "1.0",
    "JAX_PLATFORMS": "cuda",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}

# Framework, allocator: what to set, and whether it grows as the program does.
TF = {
    "bfc": ({}, False),
    "bfc_growth": ({"TF_FORCE_GPU_ALLOW_GROWTH": "true"}, True),
    "cuda_malloc_async": ({"TF_GPU_ALLOCATOR": "cuda_malloc_async"}, True),
    "thimble": ({"TF_GPU_ALLOCATOR": "thimble", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}, True),
}
JAX = {
    "default": ({"XLA_PYTHON_CLIENT_ALLOCATOR": "default"}, False),
    "bfc_growth": ({"XLA_PYTHON_CLIENT_ALLOCATOR": "bfc",
                    "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, True),
    "vmm": ({"XLA_PYTHON_CLIENT_ALLOCATOR": "vmm"}, True),
    "thimble": ({"XLA_PYTHON_CLIENT_ALLOCATOR": "thimble",
                 "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, True),
}

PROGRAMS = {
    "cnn": (TF, ["cnn.py"]),
    "resnet50": (TF, ["resnet50.py", "--steps", "3", "--batch", "8"]),
    "vgg16": (TF, ["vgg16.py", "--steps", "3", "--batch", "4"]),
    "gpt2": (TF, ["gpt2.py", "--steps", "3", "--layers", "4", "--tokens", "256"]),
    "gpt2_lengths": (TF, ["gpt2.py", "--steps", "8", "--layers", "2", "--tokens", "256",
                          "--lengths", "variable"]),
    "train_eval": (TF, ["train_eval.py", "--layers", "3", "--tokens", "256"]),
    "decode": (TF, ["decode.py"]),
    "jax_transformer": (JAX, ["jax_transformer.py"]),
    "jax_lengths": (JAX, ["jax_lengths.py"]),
}


@dataclasses.dataclass(frozen=True)
class Run:
    """One run that reached its end."""
    peak_in_use: int  # as the framework counts
    peak_taken: int  # as the device does


class Bench:

    def __init__(self, simulator, compiled):
        self.simulator = simulator
        self.compiled = compiled  # a folder for what JAX compiles

    def run(self, command, settings, memory):
        """A Run, or None if the program did not reach its end."""
        environment = {**os.environ, **COMMON, **settings,
                       "SIMGPU_CONF": f"memory:{memory},summary:on",
                       "JAX_COMPILATION_CACHE_DIR": self.compiled}
        command = [self.simulator, "--allow-illegal", "--", sys.executable,
                   os.path.join(FOLDER, command[0]), *command[1:]]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True,
                                  timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode != 0:
            return None
        result = json.loads(done.stdout.splitlines()[-1])
        taken = re.search(r"^simgpu: 0 .* peak ([0-9.]+) of ", done.stderr, re.MULTILINE)
        return Run(result["peak_bytes"] or 0, int(float(taken.group(1)) * MIB))

    def smallest(self, command, settings, start, quantum):
        """The smallest multiple of the quantum, from `start` on, that is enough."""
        too_small, enough, stride = start - quantum, start, quantum
        while self.run(command, settings, enough) is None:
            too_small, enough, stride = enough, enough + stride, 2 * stride
            if enough > AMPLE:
                return None
        while enough - too_small > quantum:
            middle = too_small + (enough - too_small) // quantum // 2 * quantum
            if self.run(command, settings, middle) is None:
                too_small = middle
            else:
                enough = middle
        return enough

    def row(self, name, allocator, peak):
        """All figures of one program on one allocator."""
        allocators, command = PROGRAMS[name]
        settings, grows = allocators[allocator]
        row = {"workload": name, "allocator": allocator, "peak_bytes": peak, "memory_bytes": None,
               "memory_ratio": None, "reserved_ratio": None}
        if grows:
            ample = self.run(command, settings, AMPLE)
            if ample is None:
                return row
            row["reserved_ratio"] = round(ample.peak_taken / peak, 4)
        quantum = max(2 * MIB, peak // 100 // (2 * MIB) * (2 * MIB))
        start = -(-peak // quantum) * quantum
        memory = self.smallest(command, settings, start, quantum)
        if memory is not None:
            row.update(memory_bytes=memory, memory_ratio=round(memory / peak, 4))
        return row

    def peak(self, name):
        """What a program has in use at its peak: no device can be smaller.

        As Thimble counts it, to 256 bytes; BFC counts the unused rests of its chunks, too.
        """
        allocators, command = PROGRAMS[name]
        run = self.run(command, allocators["thimble"][0], AMPLE)
        if run is None:
            raise SystemExit(f"live: {name} does not run, with {AMPLE} bytes")
        return run.peak_in_use


def table(rows):
    """As Markdown: programs down, allocators across."""
    lines = []
    for allocators in (TF, JAX):
        names = [name for name in PROGRAMS if PROGRAMS[name][0] is allocators]
        chosen = {(row["workload"], row["allocator"]): row for row in rows}
        if not any(name == workload for name in names for workload, _ in chosen):
            continue
        lines += ["| smallest device / peak in use | peak | " + " | ".join(allocators) + " |",
                  "|---" * (2 + len(allocators)) + "|"]
        for name in names:
            cells = [chosen.get((name, allocator)) for allocator in allocators]
            if not any(cells):
                continue
            peak = next(cell["peak_bytes"] for cell in cells if cell)
            lines.append(f"| {name} | {peak / MIB:.0f} MiB | " +
                         " | ".join(text_of(cell) for cell in cells) + " |")
        lines.append("")
    lines.append("In brackets: most memory taken / peak in use, on a device that is far too large.")
    return "\n".join(lines)


def text_of(row):
    if row is None or row["memory_ratio"] is None:
        return "-"
    grown = row["reserved_ratio"]
    return f"{row['memory_ratio']:.2f}" + (f" ({grown:.2f})" if grown else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulator", required=True, help="the program //tests/simgpu:run")
    parser.add_argument("--json", action="store_true", help="one object per program and allocator")
    parser.add_argument("--only", action="append", choices=PROGRAMS, metavar="PROGRAM",
                        help=f"one of {', '.join(PROGRAMS)}; may be given again")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    compiled = tempfile.TemporaryDirectory()
    bench = Bench(options.simulator, compiled.name)
    names = options.only or list(PROGRAMS)
    rows = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        peaks = dict(zip(names, pool.map(bench.peak, names)))
        wanted = [(name, allocator, peaks[name]) for name in names
                  for allocator in PROGRAMS[name][0]]
        for row in pool.map(lambda row: bench.row(*row), wanted):
            rows.append(row)
            if options.json:
                print(json.dumps(row), flush=True)
            else:
                print(f"{row['workload']} {row['allocator']} {text_of(row)}", file=sys.stderr)
    if not options.json:
        print(table(rows))


if __name__ == "__main__":
    main()
