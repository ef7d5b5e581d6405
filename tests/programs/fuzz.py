"""Runs random programs stock and on Thimble, compares, and shrinks those that differ.

    fuzz.py programs|jax [--programs N] [--minutes N] [--seed S] [--mode M]... [--features F,F]
                         [--jobs N] [--out FOLDER] [--corpus FOLDER]

Programs have the seeds S, S + 1, and so on. With --corpus, the programs of a folder run first.
"""

import argparse
import collections
import concurrent.futures
import importlib
import multiprocessing
import os
import pathlib
import re
import sys
import time

from tests.programs import statements

SUBJECTS = {
    "programs": "tests.programs.tensorflow_subject",
    "jax": "tests.programs.jax_subject",
}
SHRINKING = 300  # seconds for one program
WAITS_FOR = re.compile(r"^# Waits for: (.*)$", re.MULTILINE)


def subject_of(name):
    return importlib.import_module(SUBJECTS[name])


# --- In a worker ----------------------------------------------------------------------------------


def shrunk(subject, program, seed, verdict, seconds):
    end = time.monotonic() + seconds
    fails = lambda smaller: any(
        each.fails for each in subject.judged(subject.source(smaller, seed), [verdict.mode]))
    return statements.shrunk(program, fails, lambda: time.monotonic() > end)


def examine(name, seed, features, modes, seconds):
    """Returns the verdicts on the program of a seed, and the shrunken text of each failing one."""
    subject = subject_of(name)
    program = subject.program(seed, features)
    verdicts = subject.judged(subject.source(program, seed), modes)
    texts = {}
    for verdict in verdicts:
        if verdict.fails:
            small = shrunk(subject, program, seed, verdict, seconds)
            texts[verdict.mode] = subject.source(small, seed)
    return verdicts, texts


def replay(name, path, modes):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    verdicts = subject_of(name).judged(text, modes)
    return verdicts, {each.mode: text for each in verdicts if each.fails}


# --- The command ----------------------------------------------------------------------------------


class Tally:
    """Counts verdicts, and prints failing programs."""

    def __init__(self, options):
        self.options = options
        self.counts = collections.Counter()
        self.failures = 0

    def add(self, what, verdicts, texts):
        self.counts["programs", ""] += 1
        print(f"{what}: " + ", ".join(f"{each.mode} {each.kind}" for each in verdicts), flush=True)
        for verdict in verdicts:
            self.counts[verdict.mode, verdict.kind] += 1
            if verdict.detail:
                print(f"{what}: {verdict}", flush=True)
            if verdict.fails:
                self.failures += 1
                self.keep(what, verdict, texts[verdict.mode])

    def keep(self, what, verdict, text):
        found = f"Found by ./dev fuzz {self.options.subject}: {what}, {verdict.mode}."
        text = f'"""{found}"""\n\n{text}'
        print(text, flush=True)
        if verdict.log:
            print("\n".join(verdict.log.splitlines()[-20:]), flush=True)
        if self.options.out:
            folder = pathlib.Path(self.options.out)
            folder.mkdir(parents=True, exist_ok=True)
            name = re.sub(r"\W+", "_", f"{what}_{verdict.mode}")
            (folder / f"{name}.py").write_text(text, encoding="utf-8")

    def summary(self):
        programs = self.counts.pop(("programs", ""), 0)
        lines = [f"{programs} programs, {self.failures} differences"]
        for mode in dict.fromkeys(mode for mode, _ in self.counts):
            told = ", ".join(f"{count} {kind}" for (other, kind), count in self.counts.items()
                             if other == mode)
            lines.append(f"  {mode}: {told}")
        return "\n".join(lines)


def corpus(options, subject):
    """Returns the programs of the corpus, except for those that wait for a repair."""
    waiting = set(subject.WAITING) - set(options.features)
    for path in sorted(pathlib.Path(options.corpus).glob("*.py")) if options.corpus else ():
        waits = WAITS_FOR.search(path.read_text(encoding="utf-8"))
        if not waits or waits[1] not in waiting:
            yield path


def run(options, subject):
    tally = Tally(options)
    end = time.monotonic() + 60 * options.minutes if options.minutes else None
    seeds = iter(range(options.seed, options.seed + options.programs)
                 if options.programs is not None else range(options.seed, sys.maxsize))
    jobs = [(str(path.name), replay, (options.subject, str(path), options.modes))
            for path in corpus(options, subject)]
    jobs = iter(jobs)

    def following():
        """The next job; None when it is time to stop."""
        job = next(jobs, None)
        if job is None and (end is None or time.monotonic() < end):
            seed = next(seeds, None)
            if seed is not None:
                job = (f"seed {seed}", examine, (options.subject, seed, options.features,
                                                 options.modes, options.shrink))
        return job

    context = multiprocessing.get_context("spawn")  # a worker imports a framework of its own
    with concurrent.futures.ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        running = {}
        while True:
            while len(running) < options.jobs and (job := following()):
                running[pool.submit(job[1], *job[2])] = job[0]
            if not running:
                break
            done, _ = concurrent.futures.wait(running, return_when="FIRST_COMPLETED")
            for future in done:
                tally.add(running.pop(future), *future.result())
    print(tally.summary(), flush=True)
    return tally


def names(text):
    return tuple(name for name in text.split(",") if name)


def parsed(arguments):
    parser = argparse.ArgumentParser(prog="./dev fuzz")
    parser.add_argument("subject", choices=SUBJECTS)
    parser.add_argument("--programs", type=int, help="number of programs (default: no limit)")
    parser.add_argument("--minutes", type=float, help="start no program after that time")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first program")
    parser.add_argument("--mode", action="append", dest="modes",
                        help="a mode; may be repeated (default: all)")
    parser.add_argument("--features", type=names, help="names separated by commas, or 'all'")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--shrink", type=float, default=SHRINKING, help="seconds per failure")
    parser.add_argument("--out", help="folder for failing programs")
    parser.add_argument("--corpus", help="folder of programs to run first")
    options = parser.parse_args(arguments)
    subject = subject_of(options.subject)
    if options.features == ("all",):
        options.features = subject.FEATURES
    options.features = options.features or tuple(
        name for name in subject.FEATURES if name not in subject.WAITING)
    options.modes = options.modes or list(subject.MODES)
    for given, valid in ((options.features, subject.FEATURES), (options.modes, subject.MODES)):
        for name in given:
            if name not in valid:
                parser.error(f"{name}: valid are {', '.join(valid)}")
    if options.programs is None and options.minutes is None:
        options.minutes = 1
    return options, subject


def main(arguments):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # of the workers
    options, subject = parsed(arguments)
    subject.prepare(options.features)
    tally = run(options, subject)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
