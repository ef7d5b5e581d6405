"""Runs other people's programs, stock and on Thimble in every mode. See README.md."""

import argparse
import os
import pathlib
import re
import sys
import time

from tests.outside import jax_suite
from tests.outside import keras_suite
from tests.outside import model_suite
from tests.outside import modes
from tests.outside import page
from tests.outside import session
from tests.outside import units

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITES = ("keras", "models", "jax")


def arguments():
    parser = argparse.ArgumentParser(prog="./dev outside", description=__doc__)
    parser.add_argument("--modes", metavar="MODE,…", default=",".join(modes.THIMBLE),
                        help=f"some of {', '.join(modes.THIMBLE)}; each is compared with stock")
    parser.add_argument("--only", choices=SUITES, help="one of the three kinds of programs")
    parser.add_argument("--match", default="", metavar="PATTERN",
                        help="run only tests, models and programs whose names match")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N",
                        help="programs at a time (%(default)s)")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / ".outside" / "page.md",
                        metavar="PATH", help="the result (.outside/page.md)")
    parser.add_argument("--fresh", action="store_true",
                        help="repeat what already ran on this wheel")
    parser.add_argument("--thimble", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--simulator", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.modes = options.modes.split(",")
    for mode in options.modes:
        if mode not in modes.THIMBLE:
            parser.error(f"mode '{mode}' is unknown; valid are {', '.join(modes.THIMBLE)}")
    try:
        re.compile(options.match)
    except re.error as error:
        parser.error(f"--match '{options.match}' is no regular expression: {error}")
    return options


def collection(options):
    chosen = (options.only,) if options.only else SUITES
    match = re.compile(options.match)
    if "keras" in chosen:
        yield from keras_suite.collection(options.match)
    if "models" in chosen:
        yield from (unit for unit in model_suite.collection() if match.search(unit.name))
    if "jax" in chosen:
        yield from (unit for unit in jax_suite.collection() if match.search(unit.name))


def say(text):
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def main():
    options = arguments()
    results = ROOT / ".outside"
    if options.fresh:
        units.forget(results)
    identity = (pathlib.Path(options.thimble).parents[1] / ".installed").read_text()
    runner = units.Runner(units.Machine(sys.executable, options.thimble, options.simulator,
                                        results, identity), say)
    began = time.monotonic()
    plan = [(unit, [mode for mode in options.modes if mode in unit.modes])
            for unit in collection(options)]
    verdicts, stale = session.run(runner, plan, options.jobs)
    seconds = time.monotonic() - began
    result = page.Page(verdicts, stale, seconds)
    options.page.parent.mkdir(parents=True, exist_ok=True)
    options.page.write_text(result.text(), encoding="utf-8")
    print(result.summary())
    print(options.page)
    return 0 if result.is_well else 1


if __name__ == "__main__":
    sys.exit(main())
