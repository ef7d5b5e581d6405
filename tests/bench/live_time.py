"""How long a step of stock TensorFlow and stock JAX takes on the clock of the simulated GPU.

For every program: the time of a warm step (the median) and the most memory taken from the device,
by allocator, where all fits. Then in less and less memory: Thimble, which swaps, and unified
memory, whose pages move when they are touched. Times are simulated: kernels, copies and driver
calls take as long as the profile of a GPU says (tests/simgpu/README.md). The host is real, and with
--slow N as if it were N times as fast.
"""

import argparse
import dataclasses
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

import live
import time_page

ROOM = 64 << 30
PARTS = (0.9, 0.8, 0.65, 0.5)  # of the peak
STEPS = 14
WARM = 6  # steps before: compiling, growing, learning
SECONDS = 3600  # of one run
UNIFIED = "unified memory"

# (framework, allocator): variables to set where all fits.
GROWING = {"TF_FORCE_GPU_ALLOW_GROWTH": "true", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
TF = {
    "bfc": GROWING,
    "cuda_malloc_async": {"TF_GPU_ALLOCATOR": "cuda_malloc_async"},
    UNIFIED: {},
    "thimble": {**GROWING, "TF_GPU_ALLOCATOR": "thimble"},
    "thimble, plan": {**GROWING, "TF_GPU_ALLOCATOR": "thimble", "THIMBLE_CONF": "plan:auto"},
}
JAX = {
    "bfc": {**GROWING, "XLA_PYTHON_CLIENT_ALLOCATOR": "bfc"},
    "cuda_async": {"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"},
    UNIFIED: {"XLA_PYTHON_CLIENT_ALLOCATOR": "bfc"},
    "thimble": {**GROWING, "XLA_PYTHON_CLIENT_ALLOCATOR": "thimble"},
    "thimble, plan": {**GROWING, "XLA_PYTHON_CLIENT_ALLOCATOR": "thimble",
                      "THIMBLE_CONF": "plan:auto"},
}
PROGRAMS = {
    "vgg16": (TF, ["vgg16.py", "--batch=32"]),
    "resnet50": (TF, ["resnet50.py", "--batch=32"]),
    "gpt2": (TF, ["gpt2.py"]),
    "jax_transformer": (JAX, ["jax_transformer.py"]),
}


@dataclasses.dataclass(frozen=True)
class Run:
    """One run that reached its end."""
    seconds: float  # of a warm step
    peak_in_use: int  # as the framework counts
    peak_taken: int  # as the device does


class Bench:

    def __init__(self, options, compiled):
        self.options = options
        self.compiled = compiled  # a folder for what JAX compiles

    def run(self, command, settings, allocator, memory=ROOM):
        """A Run, or None if the program did not reach its end."""
        options = self.options
        environment = {**os.environ, **live.COMMON, **settings,
                       "JAX_COMPILATION_CACHE_DIR": self.compiled,
                       "SIMGPU_CONF": f"memory:{memory},clock:{options.clock},slow:{options.slow},"
                                      "races:off,summary:on"}
        if allocator == UNIFIED:
            # TensorFlow takes a fraction of a device above 1 only of what it may choose itself.
            del environment["TF_DEVICE_MIN_SYS_MEMORY_IN_MB"]
            program = [os.path.join(os.path.dirname(__file__), "unified.py"), command[0]]
        else:
            program = [os.path.join(live.FOLDER, command[0])]
        done = subprocess.run(
            [options.simulator, "--allow-illegal", "--", sys.executable, *program, *command[1:],
             f"--steps={STEPS}"],
            env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode != 0:
            return None
        result = json.loads(done.stdout.splitlines()[-1])
        steps = [seconds / options.slow for seconds in result["seconds_of_step"]]
        return Run(statistics.median(steps[WARM:]), result["peak_bytes"] or 0, taken(done.stderr))

    def rows(self, name):
        """All figures of one program, as they come."""
        allocators, command = PROGRAMS[name]
        runs = {}
        for allocator, settings in allocators.items():
            runs[allocator] = self.run(command, settings, allocator)
            yield self.row(name, allocator, None, runs[allocator], runs["bfc"])
        peak = runs["thimble"].peak_in_use
        for part in PARTS:
            limit = int(part * peak)
            if allocators is TF:
                settings = {**TF["thimble"], "THIMBLE_CONF": f"swap:auto,limit:{limit}"}
                run = self.run(command, settings, "thimble")
                yield self.row(name, "thimble, swap", part, run, runs["bfc"])
            run = self.run(command, allocators[UNIFIED], UNIFIED, limit)
            yield self.row(name, UNIFIED, part, run, runs["bfc"])

    def row(self, name, allocator, part, run, base):
        line = {"workload": name, "clock": self.options.clock, "allocator": allocator,
                "part_of_peak": part}
        if run is None:
            return {**line, "milliseconds": None, "ratio": None, "taken_bytes": None}
        return {**line, "milliseconds": round(1e3 * run.seconds, 2),
                "ratio": round(run.seconds / base.seconds, 4), "taken_bytes": run.peak_taken}


def taken(summary):
    """The most memory that the device was asked for, managed pages included."""
    found = re.findall(r"^simgpu: 0 .* peak ([0-9.]+) ", summary, re.MULTILINE)
    return int(sum(map(float, found)) * live.MIB)


# --- The command ----------------------------------------------------------------------------------


def table(rows):
    """Markdown: a table for each program."""
    lines = []
    for name in dict.fromkeys(row["workload"] for row in rows):
        lines += [f"| {name} | memory | ms a step, simulated | of bfc's | taken from the device |",
                  "|---|---|---|---|---|"]
        for row in rows:
            if row["workload"] != name:
                continue
            part = row["part_of_peak"]
            memory = f"{100 * part:.0f} % of the peak" if part else "enough"
            if row["ratio"] is None:
                cells = "does not run | | "
            else:
                cells = (f"{row['milliseconds']:.1f} | {row['ratio']:.3f} | "
                         f"{row['taken_bytes'] / live.MIB:.0f} MiB")
            lines.append(f"| {row['allocator']} | {memory} | {cells} |")
        lines.append("")
    return "\n".join(lines)


def charts(rows):
    """{program: {allocator: [(part, ratio)]}}; where all fits is the beginning of each line."""
    made = {}
    for row in rows:
        if row["part_of_peak"] and row["ratio"]:
            line = made.setdefault(row["workload"], {}).setdefault(row["allocator"], [(1.0, 1.0)])
            line.append((row["part_of_peak"], row["ratio"]))
    return made


def at_least_one(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return number


def main():
    parser = argparse.ArgumentParser(prog="./dev bench time", description=__doc__.split("\n\n")[0],
                                     epilog=__doc__.split("\n\n", 1)[1])
    parser.add_argument("--simulator", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--clock", default="a100", metavar="GPU",
                        help="a100, h100, v100, t4, gtx1080ti, or a file (default: %(default)s)")
    parser.add_argument("--slow", type=at_least_one, default=10, metavar="N",
                        help="the device is so many times slower than modelled (%(default)s)")
    parser.add_argument("--only", action="append", choices=PROGRAMS, metavar="PROGRAM",
                        help=f"one of {', '.join(PROGRAMS)}; may be repeated")
    parser.add_argument("--json", action="store_true", help="one object per row")
    parser.add_argument("--page", metavar="PATH", help="write the picture, as HTML")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as compiled:
        bench = Bench(options, compiled)
        for name in options.only or PROGRAMS:
            for row in bench.rows(name):
                rows.append(row)
                print(json.dumps(row), file=sys.stdout if options.json else sys.stderr, flush=True)
    if not options.json:
        print(table(rows))
    if options.page:
        title = f"Less memory, longer steps: {options.clock}, slowed down {options.slow} times"
        with open(options.page, "w", encoding="utf-8") as file:
            file.write(time_page.page(title, charts(rows)))


if __name__ == "__main__":
    main()
