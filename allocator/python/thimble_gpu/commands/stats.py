"""`thimble stats`: shows the figures of runs, also while they last."""

import json
import sys
import time

from thimble_gpu import abi
from thimble_gpu import live
from thimble_gpu import screen
from thimble_gpu import summary
from thimble_gpu import text

NO_RUN = ("`thimble run` is not running a program now. To read an event log, name it: "
          "thimble stats LOG, with the path from THIMBLE_CONF=log:PATH")
SECONDS = 1.0  # between two updates


def add_to(commands):
    parser = commands.add_parser(
        "stats", help="show the figures of a running program or of an event log",
        description="Without LOG, shows how the memory of the programs that `thimble run` runs now "
        "is made up; in a terminal, updates until they end or you press Ctrl-C. With LOG, shows "
        "the figures of event logs (THIMBLE_CONF=log:PATH), also of programs that still run.")
    parser.add_argument("logs", nargs="*", metavar="LOG")
    parser.add_argument("--every", type=_seconds, metavar="SECONDS",
                        help="update every SECONDS (default in a terminal: 1)")
    parser.add_argument("--json", action="store_true",
                        help="one JSON object per line: per log, or per device and update")
    parser.set_defaults(function=lambda options: _stats(parser, options))


def _seconds(value):
    seconds = float(value)
    if not 0.1 <= seconds <= 3600:
        raise ValueError
    return seconds


def _stats(parser, options):
    if options.logs and options.every:
        parser.error("--every is for running programs: leave it out, or leave out the logs")
    if options.logs:
        return _of_logs(options)
    devices = live.read() or _wait_for_first()
    if not devices:
        text.tell(f"thimble stats: {NO_RUN}")
        return 2
    every = options.every or (SECONDS if sys.stdout.isatty() and not options.json else None)
    if every is None:
        _show_once(devices, options.json)
        return 0
    try:
        _follow(devices, every, options.json)
    except KeyboardInterrupt:
        print(file=sys.stderr)
    return 0


def _wait_for_first():
    """Waits for a program that has just begun to write its first figures."""
    until = time.monotonic() + 2
    while live.folders() and time.monotonic() < until:
        time.sleep(0.1)
        devices = live.read()
        if devices:
            return devices
    return []


def _show_once(devices, as_json):
    for stats in devices:
        if as_json:
            print(json.dumps(stats), flush=True)
            continue
        for label, rest in live.lines(stats, _bar()):
            print(f"{label:<12} {rest}")


def _bar():
    return "█" if (sys.stdout.encoding or "").lower().startswith("utf") else "#"


def _follow(devices, every, as_json):
    """Shows the devices until no program runs."""
    if as_json or not sys.stdout.isatty():
        while devices:
            _show_once(devices, as_json)
            time.sleep(every)
            devices = live.read()
        return
    bar = _bar()
    with screen.of_terminal() as terminal:
        while devices:
            terminal.show([row for stats in devices for row in live.lines(stats, bar)])
            time.sleep(every)
            devices = live.read()


def _of_logs(options):
    status = 0
    for log in options.logs:
        try:
            line = {"log": log, **summary.figures(log)}
        except abi.ThimbleError as error:
            text.tell(f"thimble stats: {error}")
            return 2
        status = summary.DAMAGED if line["damaged_at"] else status
        if options.json:
            print(json.dumps(line), flush=True)
        else:
            _print(line)
    return status


def _print(line):
    print(line["log"])
    print(f"  peak {text.size(line['peak_in_use'])} in use, {text.size(line['peak_reserved'])} "
          f"reserved, {line['stitches']} blocks stitched")
    print(f"  {line['allocations']} allocations, {line['steps']} steps")
    plan = summary.describe_plan(line["plan_requests"], line["plan_hits"], line["plan_repeats"])
    swap = summary.describe_swap(line["swap_out_bytes"], line["swap_in_bytes"],
                                 line["peak_swapped"], line["swap_wait_ns"])
    for note in filter(None, (plan, swap, line["note"])):
        print("  " + note)
