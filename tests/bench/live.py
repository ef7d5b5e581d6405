"""The smallest simulated GPU on which stock TensorFlow and stock JAX still train, by allocator.

For every program of the list and every allocator: the smallest memory, in steps of one percent,
with which the whole program runs, divided by what the program has in use at its peak on the
smallest device that is enough for Thimble. (Not on a large one: TensorFlow rewrites a program that
comes close to filling its device, and it may then need more.) A run is a new process on the
simulated GPU (tests/simgpu), so a figure holds for the real framework and for everything it does
with memory; nothing is replayed. Allocators that grow are also measured on a device that is much
too large: the most they took from it, divided by the peak in use there.
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

# TensorFlow keeps some of a device for itself, more on larger ones. This is turned off, so that a
# device of N bytes has N bytes for every allocator. One thread runs a program's ops, so that every
# run makes the same requests in the same order. JAX compiles a program once for all its runs: that
# takes a minute or two, a run takes seconds.
COMMON = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_DEVICE_MIN_SYS_MEMORY_IN_MB": "0",
    "TF_NUM_INTEROP_THREADS": "1",
    "JAX_PLATFORMS": "cuda",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}

# (framework, allocator): variables to set, and whether the allocator grows with the program.
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
                       "SIMGPU_CONF": f"memory:{memory},summary:on"}
        if command[0].startswith("jax_"):
            # XLA compiles for the size of the device, so keep the size and make part of it
            # unavailable. JAX would take three quarters of the rest.
            environment.update({
                "SIMGPU_CONF": f"memory:{AMPLE},reserve:{AMPLE - memory},summary:on",
                "XLA_CLIENT_MEM_FRACTION": repr(memory / AMPLE),
                "JAX_COMPILATION_CACHE_DIR": self.compiled})
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

    def smallest(self, command, settings, guess, quantum):
        """The smallest multiple of the quantum that is enough, and its Run.

        Starts at the guess, moves up or down in growing strides, then bisects.
        """
        memory, stride = -(-guess // quantum) * quantum, quantum
        run = self.run(command, settings, memory)
        too_small, enough = (0, memory) if run else (memory, None)
        while enough is None:
            memory, stride = memory + stride, 2 * stride
            if memory > AMPLE:
                return None, None
            run = self.run(command, settings, memory)
            too_small, enough = (too_small, memory) if run else (memory, None)
        while too_small == 0 and enough > quantum:
            memory, stride = max(enough - stride, quantum), 2 * stride
            tried = self.run(command, settings, memory)
            if tried is None:
                too_small = memory
            else:
                enough, run = memory, tried
        while enough - too_small > quantum:
            memory = too_small + (enough - too_small) // quantum // 2 * quantum
            tried = self.run(command, settings, memory)
            if tried is None:
                too_small = memory
            else:
                enough, run = memory, tried
        return enough, run

    def own_row(self, name):
        """Returns Thimble's row, with which the other rows are compared."""
        allocators, command = PROGRAMS[name]
        settings, _ = allocators["thimble"]
        if allocators is JAX:
            self.run(command, settings, AMPLE)  # compiles, which takes memory of its own
        ample = self.run(command, settings, AMPLE)
        if ample is None:
            raise SystemExit(f"live: {name} does not run, with {AMPLE} bytes")
        quantum = max(2 * MIB, ample.peak_in_use // 100 // (2 * MIB) * (2 * MIB))
        memory, run = self.smallest(command, settings, ample.peak_taken, quantum)
        base = Base(name, ample.peak_in_use, run.peak_in_use, memory, quantum)
        return base, row_of(base, "thimble", memory, ample)

    def row(self, base, allocator):
        """All figures of one program on another allocator."""
        allocators, command = PROGRAMS[base.name]
        settings, grows = allocators[allocator]
        ample = self.run(command, settings, AMPLE) if grows else None
        if grows and ample is None:
            return row_of(base, allocator, None, None)
        memory, _ = self.smallest(command, settings, base.memory, base.quantum)
        return row_of(base, allocator, memory, ample)


@dataclasses.dataclass(frozen=True)
class Base:
    """The program's peak in use, as Thimble counts it, in units of 256 bytes.

    BFC counts the unused rests of its chunks, too.
    """
    name: str
    ample_peak: int  # on a device that is far too large
    peak: int  # on the smallest that is enough for Thimble
    memory: int  # of that device
    quantum: int  # of the search


def row_of(base, allocator, memory, ample):
    return {"workload": base.name, "allocator": allocator, "peak_bytes": base.peak,
            "memory_bytes": memory,
            "memory_ratio": round(memory / base.peak, 4) if memory else None,
            "reserved_ratio": round(ample.peak_taken / base.ample_peak, 4) if ample else None}


def table(rows):
    """Formats the figures as Markdown: a row per program, a column per allocator."""
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
                        help=f"one of {', '.join(PROGRAMS)}; may be repeated")
    # One job more than processors, because TensorFlow waits ten seconds before it gives up.
    parser.add_argument("--jobs", type=int, default=os.cpu_count() + 1)
    options = parser.parse_args()
    compiled = tempfile.TemporaryDirectory()
    bench = Bench(options.simulator, compiled.name)
    names = options.only or list(PROGRAMS)
    rows = []

    def show(row):
        rows.append(row)
        if options.json:
            print(json.dumps(row), flush=True)
        else:
            print(f"{row['workload']} {row['allocator']} {text_of(row)}", file=sys.stderr)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        wanted = []
        for base, row in pool.map(bench.own_row, names):
            show(row)
            wanted += [(base, allocator) for allocator in PROGRAMS[base.name][0]
                       if allocator != "thimble"]
        for row in pool.map(lambda pair: bench.row(*pair), wanted):
            show(row)
    if not options.json:
        print(table(rows))


if __name__ == "__main__":
    main()
