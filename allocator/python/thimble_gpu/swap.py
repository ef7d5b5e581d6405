"""`thimble swap`: what of a training step can wait on the host, and when."""

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
        "swap", help="plan which blocks of a training step wait on the host",
        description="Reads a recorded trace with accesses (O lines) and plans which blocks of its "
        "last whole step leave the device between two uses, so that the step needs less memory.")
    parser.add_argument("files", nargs="+", metavar="FILE")
    goal = parser.add_mutually_exclusive_group()
    goal.add_argument("--limit", metavar="BYTES",
                      help="the largest peak that is low enough (8GiB, 512MiB, bytes)")
    goal.add_argument("--slowdown", metavar="PERCENT",
                      help="how much longer a step may take (default: 0)")
    parser.add_argument("--bus", metavar="BUS",
                        help="13 (PCIe 3, the default), 24 (PCIe 4), or OUT/IN in GB/s")
    parser.add_argument("--run-ahead", metavar="MS", dest="run_ahead_ms",
                        help="how far the host is ahead of the device (default: 0)")
    parser.add_argument("--out", metavar="SCHEDULE.csv",
                        help="write what leaves when; for one file only")
    parser.add_argument("--curve", action="store_true",
                        help="instead of one schedule, a table: limit, and the slowdown it costs")
    parser.add_argument("--json", action="store_true",
                        help="one JSON object per file (with --curve: per limit)")
    parser.set_defaults(function=lambda options: _swap(parser, options))


def _swap(parser, options):
    if options.out is not None and len(options.files) > 1:
        parser.error(f"--out {options.out} is for one file, but {len(options.files)} are given")
    if options.curve and (options.limit or options.slowdown or options.out):
        parser.error("--curve goes without --limit, --slowdown and --out")
    core = abi.installed_core()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own would wait for the end of a search
    show = _Table().show if not options.json else lambda line: print(json.dumps(line), flush=True)
    for file in options.files:
        try:
            status = (_curve if options.curve else _one)(core, file, options, show)
        except abi.ThimbleError as error:
            text.tell(f"thimble swap: {error}")
            return 2
        if status != 0:
            return status
    return 0


def _one(core, file, options, show):
    line = _plan(core, file, options, options.limit)
    if line is None:
        text.tell(f"thimble swap: {core.last_error().decode(errors='replace')}")
        return 1
    show(line)
    return 0


def _curve(core, file, options, show):
    """From the peak down in steps of a twentieth, as far as there is a schedule."""
    peak = _plan(core, file, options, None)["peak_before"]
    for twentieths in range(19, 0, -1):
        limit = max(1, peak * twentieths // 20)
        line = _plan(core, file, options, limit)
        if line is None:
            break
        show({"limit": limit, **line})
    return 0


def _plan(core, file, options, limit):
    """The figures of a schedule, or None if there is none within the limit. Raises ThimbleError."""
    settings = {"limit": limit, "slowdown": options.slowdown, "bus": options.bus,
                "run_ahead_ms": options.run_ahead_ms}
    conf = ",".join(f"{key}:{value}" for key, value in settings.items() if value is not None)
    info = abi.SwapInfo(struct_size=ctypes.sizeof(abi.SwapInfo))
    out = None if options.out is None else os.fsencode(options.out)
    start = time.monotonic()
    with progress.Progress(f"{file} {limit}" if limit else file):
        status = core.swap_file(os.fsencode(file), out, conf.encode(), info)
    if status == abi.OUT_OF_MEMORY:
        return None
    core.check(status)
    return _line(file, info, round(time.monotonic() - start, 3))


def _line(file, info, seconds):
    line = {"file": file}
    line.update((name, getattr(info, name)) for name in ("peak_before", "peak_after"))
    line["ratio"] = round(info.peak_after / info.peak_before, 6)
    line["slowdown"] = info.slowdown_ppm / 10000
    line.update((name, getattr(info, name)) for name in ("bytes_out", "bytes_in", "swaps", "bus_out",
                                                    "bus_in"))
    line["policy"] = info.policy.decode()
    line["autoswap"] = {"DOA": info.peak_doa, "AOA": info.peak_aoa, "WDOA": info.peak_wdoa,
                        "SWDOA": info.peak_swdoa}
    line["seconds"] = seconds
    return line


class _Table:
    """Its header comes with the first line: nothing else is there if there is none."""

    _header = (f"{'file':32} {'peak before':>14} {'peak after':>14} {'ratio':>7} {'slowdown%':>9} "
               f"{'bytes out':>14} {'bytes in':>14} {'seconds':>8}  policy\n")

    def show(self, line):
        print(self._header + "{file:32} {peak_before:14} {peak_after:14} {ratio:7.4f} "
              "{slowdown:9.3f} {bytes_out:14} {bytes_in:14} {seconds:8.2f}  {policy}".format(**line),
              flush=True)
        self._header = ""
