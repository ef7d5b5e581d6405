"""Everything in turn in one process, again and again: nothing grows, and numbers are stock's.

    soak.py [--minutes N] [--rounds N] [--features F,F]

A third of the time each: stock TensorFlow, Thimble with `swap`, Thimble with `plan`. A round
trains, evaluates, saves, swaps, runs out of memory, trims, and goes on; after it every invariant is
checked.
"""

import argparse
import sys

from tests.programs.generate import WAITING
from tests.soak.figures import BYTES
from tests.soak.figures import FIRST
from tests.soak.figures import growth
from tests.soak.figures import grown
from tests.soak.rounds import SWAP_LIMIT
from tests.soak.rounds import soak
from tests.tf_plugin import forked

FEATURES = ("forks", "oom_xla")
LEAST = 20  # rounds: fewer tell nothing about growth
# The limit, the options, and what must have been done.
MODES = {
    "swap": (SWAP_LIMIT, "device:cpu,retry_ms:50,swap:auto", "MiB swapped"),
    "plan": (1 << 30, "device:cpu,retry_ms:50,plan:auto", "plans"),
}


def ran(mode, features, seconds, count):
    """What soak() told, and what was wrong with it."""
    if mode == "stock":
        result = forked.run(soak, None, features, seconds, count, plugin=None)
    else:
        limit, conf, _ = MODES[mode]
        result = forked.run(soak, limit, features, seconds, count,
                            THIMBLE_CONF=f"{conf},limit:{limit}")
    if not isinstance(result.answer, tuple):
        last = "\n".join(result.log.splitlines()[-40:])
        sys.exit(f"{mode}: the process did not end well: {result.answer}\n{last}")
    if len(result.answer[0]) < LEAST:
        sys.exit(f"{mode}: only {len(result.answer[0])} rounds; growth needs {LEAST}, so give more "
                 "minutes")
    return result.answer


def text_of(name, value):
    return f"{value / (1 << 20):.2f} MiB" if name in BYTES else str(value)


def told(mode, answer):
    rounds, held, counts = answer
    print(f"{mode}: {len(rounds)} rounds" +
          "".join(f", {count} {what}" for what, count in counts.items()))
    for name in held[0]:
        samples = [each[name] for each in held]
        print(f"  {name:12} {text_of(name, samples[int(FIRST * len(samples))]):>12} after a tenth, "
              f"{text_of(name, samples[-1]):>12} at the end, "
              f"growth {text_of(name, max(0, growth(samples)))}", flush=True)


def wrong_rounds(rounds, stock):
    return [index + 1 for index, (mine, right) in enumerate(zip(rounds, stock)) if mine != right]


def main(arguments):
    parser = argparse.ArgumentParser(prog="./dev soak")
    parser.add_argument("--minutes", type=float, default=1, help="for all three processes together")
    parser.add_argument("--rounds", type=int, default=sys.maxsize, help="at most this many")
    parser.add_argument("--features", type=lambda text: tuple(filter(None, text.split(","))),
                        default=tuple(name for name in FEATURES if name not in WAITING),
                        help=f"any of {', '.join(FEATURES)}")
    options = parser.parse_args(arguments)
    for name in options.features:
        if name not in FEATURES:
            parser.error(f"{name}: valid are {', '.join(FEATURES)}")
    seconds = 60 * options.minutes / 3
    stock = ran("stock", options.features, seconds, options.rounds)
    told("stock", stock)
    failures = []
    for mode in MODES:
        ours = ran(mode, options.features, seconds, options.rounds)
        told(mode, ours)
        wrong = wrong_rounds(ours[0], stock[0])
        if wrong:
            failures.append(f"{mode}: numbers differ from stock's in rounds {wrong[:10]}")
        if not ours[2][MODES[mode][2]]:
            failures.append(f"{mode}: 0 {MODES[mode][2]}: the soak did not reach what it is for")
        failures += [f"{mode}: {name} grows by {text_of(name, value)}"
                     for name, value in grown(ours[1], stock[1]).items()]
    print("\n".join(failures) or "nothing grows, and numbers are stock's")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
