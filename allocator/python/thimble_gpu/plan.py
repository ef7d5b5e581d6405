"""`thimble plan`: places for buffers with known lifetimes."""

import ctypes
import json
import os
import signal
import time

from thimble_gpu import abi
from thimble_gpu import progress
from thimble_gpu import text


def add_to(commands):
    parser = commands.add_parser(
        "plan", help="find places for buffers with known lifetimes",
        description="Reads id,lower,upper,size (a buffer is live from lower until upper, which is "
        "excluded) and finds an offset for each, so that no two that are live together overlap and "
        "the whole is as low as possible.")
    parser.add_argument("files", nargs="+", metavar="FILE.csv")
    parser.add_argument("--seconds", type=float, default=5,
                        help="how long to look for something better, per file (default: 5)")
    parser.add_argument("--seed", type=_seed, default=1,
                        help="same seed, same search (default: 1)")
    parser.add_argument("--out", metavar="PLAN.csv", help="write id,offset; for one file only")
    parser.add_argument("--json", action="store_true", help="one JSON object per file")
    parser.set_defaults(function=lambda options: _plan(parser, options))


def _seed(value):
    number = int(value)
    if not 0 <= number < 1 << 64:
        raise ValueError
    return number


def _plan(parser, options):
    if options.out is not None and len(options.files) > 1:
        parser.error(f"--out {options.out} is for one file, but {len(options.files)} are given")
    core = abi.installed_core()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own would wait for the end of a search
    header = f"{'file':32} {'buffers':>8} {'height':>20} {'lower bound':>20} {'ratio':>9} " \
             f"{'seconds':>8}\n"
    for file in options.files:
        try:
            line = _plan_file(core, file, options)
        except abi.ThimbleError as error:
            text.tell(f"thimble plan: {error}")
            return 2
        if options.json:
            print(json.dumps(line), flush=True)
        else:
            print(header + "{file:32} {buffers:8} {height:20} {lower_bound:20} {ratio:9.6f} "
                  "{seconds:8.2f}".format(**line), flush=True)
            header = ""
    return 0


def _plan_file(core, file, options):
    info = abi.PlanInfo(struct_size=ctypes.sizeof(abi.PlanInfo))
    out = None if options.out is None else os.fsencode(options.out)
    start = time.monotonic()
    with progress.Progress(file, options.seconds):
        status = core.plan_file(os.fsencode(file), out, options.seconds, options.seed, info)
    core.check(status)
    line = {"file": file, **{name: getattr(info, name) for name in abi.PLAN_INFO}}
    line["ratio"] = line["height"] / line["lower_bound"]
    line["seconds"] = round(time.monotonic() - start, 3)
    return line
