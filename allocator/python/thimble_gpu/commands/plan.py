"""`thimble plan`: finds places for buffers with known lifetimes."""

import json
import signal
import time

from thimble_gpu import abi
from thimble_gpu import offline
from thimble_gpu import progress
from thimble_gpu import text


def add_to(commands):
    parser = commands.add_parser(
        "plan", help="find places for buffers with known lifetimes",
        description="Reads buffers with their lifetimes and finds an offset for each, so that no "
        "two that are live together overlap and the whole is as low as possible. A file is a .csv "
        "(id,lower,upper,size: live from lower until upper, which is excluded), a recorded trace "
        "or an event log. An independent validator checks every plan before it is shown.",
        epilog="Figures: buffers in the file; height, the end of the highest buffer; lower_bound, "
        "the most that is live at once, which no plan can beat; ratio of the two; seconds taken; "
        "with --baselines smartpool, the ratio of SmartPool's heuristic (first fit, the largest "
        "first). Exit status: 0 done, 2 bad usage or bad file.")
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--seconds", type=float, default=5,
                        help="how long to search for a better plan, per file (default: 5)")
    parser.add_argument("--seed", type=_seed, default=1,
                        help="seed of the search; the same seed gives the same search (default: 1)")
    parser.add_argument("--out", metavar="PLAN.csv",
                        help="write the plan as id,offset; for one file only")
    parser.add_argument("--baselines", action="store_const", const="on",
                        help="also report the published heuristic")
    parser.add_argument("--json", action="store_true", help="one JSON object per file")
    parser.set_defaults(function=lambda options: _plan(parser, options))


def _seed(value):
    number = int(value)
    if not 0 <= number < 1 << 64:
        raise ValueError
    return number


def _plan(parser, options):
    if options.out is not None and len(options.files) > 1:
        parser.error(f"--out {options.out} is for one file, but {len(options.files)} files were "
                     "given")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler would wait for the search
    show = _Table().show if not options.json else lambda line: print(json.dumps(line), flush=True)
    for file in options.files:
        try:
            show(_plan_file(file, options))
        except abi.ThimbleError as error:
            text.tell(f"thimble plan: {error}")
            return 2
    return 0


def _plan_file(file, options):
    start = time.monotonic()
    with progress.Progress(file, options.seconds):
        answer = offline.run("plan", problem=file, plan=options.out, seconds=options.seconds,
                             seed=options.seed, baselines=options.baselines)
    bound = answer["lower_bound"]
    line = {"file": file, **answer, "ratio": answer["height"] / bound}
    if "smartpool" in answer:
        line["smartpool"] = answer["smartpool"] / bound
    line["seconds"] = round(time.monotonic() - start, 3)
    return line


class _Table:
    """Prints its header with the first line, and nothing if there is no line."""

    def __init__(self):
        self._header = None

    def show(self, line):
        if self._header is None:
            self._header = (f"{'file':32} {'buffers':>8} {'height':>20} {'lower bound':>20} "
                            f"{'ratio':>9} {'seconds':>8}")
            print(self._header + (" smartpool" if "smartpool" in line else ""))
        row = ("{file:32} {buffers:8} {height:20} {lower_bound:20} {ratio:9.6f} "
               "{seconds:8.2f}").format(**line)
        print(row + (f" {line['smartpool']:9.6f}" if "smartpool" in line else ""), flush=True)
