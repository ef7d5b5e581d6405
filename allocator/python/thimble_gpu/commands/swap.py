"""`thimble swap`: plans which blocks of a training step wait on the host, and when."""

import json
import signal
import time

from thimble_gpu import abi
from thimble_gpu import offline
from thimble_gpu import progress
from thimble_gpu import text
from thimble_gpu.selftest import record


def add_to(commands):
    parser = commands.add_parser(
        "swap", help="plan which blocks of a training step wait on the host",
        description="Reads a recorded trace with accesses (O lines) and plans which blocks of its "
        "last whole step leave the device between two uses, so that the step needs less memory. An "
        "independent validator checks every schedule before it is shown.",
        epilog="Figures: peak_before, most bytes that are live in the step; peak_after, most bytes "
        "on the device with the schedule; their ratio; slowdown of a step in percent, if durations "
        "and bus match the model; bytes_out and bytes_in, copied in a step; swaps, how often a "
        "block leaves; bus_out and bus_in, the bus speed in bytes per second; policy, the "
        "search that found the schedule; seconds taken; with --baselines autoswap, the peak for "
        "each of AutoSwap's scores, without slowdown. Exit status: 0 done, 1 no schedule keeps the "
        "limit, 2 bad usage or bad file.")
    parser.add_argument("files", nargs="+", metavar="FILE")
    goal = parser.add_mutually_exclusive_group()
    goal.add_argument("--limit", metavar="BYTES",
                      help="the peak must not exceed this (8GiB, 512MiB, bytes)")
    goal.add_argument("--slowdown", metavar="PERCENT",
                      help="how much longer a step may take (default: 0)")
    parser.add_argument("--bus", metavar="BUS",
                        help="13 (PCIe 3: 13.2 GB/s and 47 us out, 12.2 GB/s and 9.7 us in), 24 "
                        "(PCIe 4: 24 GB/s and 10 us either way), OUT/IN in GB/s, as 55/55, or "
                        "OUT/IN/OUT/IN in GB/s and us; machine: as `thimble selftest` measured it "
                        "(default: as measured in the event log, otherwise machine if the "
                        "self-test has run, otherwise 13)")
    parser.add_argument("--run-ahead", metavar="MS", dest="run_ahead_ms",
                        help="how far the host is ahead of the device (default: 0)")
    parser.add_argument("--out", metavar="SCHEDULE.csv",
                        help="write the schedule; for one file only")
    parser.add_argument("--curve", action="store_true",
                        help="print a table of limits and their slowdowns instead of one schedule")
    parser.add_argument("--baselines", action="store_const", const="on",
                        help="also report the published scores")
    parser.add_argument("--json", action="store_true",
                        help="one JSON object per file (with --curve: per limit)")
    parser.set_defaults(function=lambda options: _swap(parser, options))


def _swap(parser, options):
    if options.out is not None and len(options.files) > 1:
        parser.error(f"--out {options.out} is for one file, but {len(options.files)} files were "
                     "given")
    if options.curve and (options.limit or options.slowdown or options.out):
        parser.error("--curve cannot be combined with --limit, --slowdown or --out")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler would wait for the search
    try:
        _take_prices(options)
    except record.Unusable as problem:
        text.tell(f"thimble swap: bus 'machine': {problem}")
        return 2
    show = _Table().show if not options.json else lambda line: print(json.dumps(line), flush=True)
    for file in options.files:
        try:
            if options.curve:
                _curve(file, options, show)
            else:
                show(_plan(file, options, options.limit))
        except abi.ThimbleError as error:
            text.tell(f"thimble swap: {error}")
            return 1 if error.status == abi.OUT_OF_MEMORY else 2
    return 0


def _take_prices(options):
    """Sets options.machine_bus: what the self-test measured, None if it has not run. Raises
    Unusable if the user asked for it."""
    options.machine_bus = None
    try:
        options.machine_bus = record.bus()
    except record.Unusable:
        if options.bus == "machine":
            raise
    if options.bus == "machine":
        options.bus = options.machine_bus


def _curve(file, options, show):
    """Lowers the limit from the peak in steps of a twentieth, until no schedule fits."""
    peak = _plan(file, options, None)["peak_before"]
    for twentieths in range(19, 0, -1):
        limit = max(1, peak * twentieths // 20)
        try:
            show({"limit": limit, **_plan(file, options, limit)})
        except abi.ThimbleError as error:
            if error.status != abi.OUT_OF_MEMORY:
                raise
            break


def _plan(file, options, limit):
    """Returns the figures of a schedule. Raises ThimbleError."""
    start = time.monotonic()
    with progress.Progress(f"{file} {limit}" if limit else file):
        answer = offline.run("swap", trace=file, schedule=options.out, limit=limit,
                             slowdown=options.slowdown, bus=options.bus,
                             machine_bus=options.machine_bus,
                             run_ahead_ms=options.run_ahead_ms, baselines=options.baselines)
    line = {"file": file, **answer,
            "ratio": round(answer["peak_after"] / answer["peak_before"], 6),
            "slowdown": answer["slowdown_ppm"] / 10000,
            "seconds": round(time.monotonic() - start, 3)}
    del line["slowdown_ppm"]
    return line


class _Table:
    """Prints its header with the first line, and nothing if there is no line."""

    _header = (f"{'file':32} {'peak before':>14} {'peak after':>14} {'ratio':>7} {'slowdown%':>9} "
               f"{'bytes out':>14} {'bytes in':>14} {'seconds':>8}  policy\n")

    def show(self, line):
        print(self._header + "{file:32} {peak_before:14} {peak_after:14} {ratio:7.4f} "
              "{slowdown:9.3f} {bytes_out:14} {bytes_in:14} {seconds:8.2f}  {policy}".format(**line),
              flush=True)
        self._header = ""
