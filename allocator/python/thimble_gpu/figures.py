"""`thimble stats`: the figures of runs, also of those that are still under way."""

import glob
import json
import os
import sys
import tempfile

from thimble_gpu import abi
from thimble_gpu import run
from thimble_gpu import summary
from thimble_gpu import text

NO_RUN = ("no program is under way on `thimble run`, and no log is named: "
          "thimble stats LOG, with the path that THIMBLE_CONF=log:PATH has")


def add_to(commands):
    parser = commands.add_parser(
        "stats", help="figures of a program that runs, or of an event log",
        description="The figures of event logs (THIMBLE_CONF=log:PATH), to the last 4096 events; "
        "without one, of the programs that `thimble run` runs now.")
    parser.add_argument("logs", nargs="*", metavar="LOG")
    parser.add_argument("--json", action="store_true", help="one JSON object per log")
    parser.set_defaults(function=_stats)


def _under_way():
    """Logs of programs that `thimble run` runs now, of this user."""
    folders = glob.glob(os.path.join(tempfile.gettempdir(), run.FOLDER_PREFIX + "*"))
    return sorted(os.path.join(folder, name)
                  for folder in folders if os.stat(folder).st_uid == os.getuid()
                  for name in os.listdir(folder) if summary.NAME.fullmatch(name))


def _stats(options):
    core = abi.installed_core()
    logs = options.logs or _under_way()
    if not logs:
        print(f"thimble stats: {NO_RUN}", file=sys.stderr)
        return 2
    for log in logs:
        try:
            line = {"log": log, **summary.figures(core, log)}
        except abi.ThimbleError as error:
            print(f"thimble stats: {error}", file=sys.stderr)
            return 2
        if options.json:
            print(json.dumps(line), flush=True)
        else:
            _print(line)
    return 0


def _print(line):
    print(line["log"])
    print(f"  peak {text.size(line['peak_in_use'])} in use, {text.size(line['peak_reserved'])} "
          f"reserved, {line['stitches']} blocks stitched")
    print(f"  {line['allocations']} allocations, {line['steps']} steps")
    plan = summary.describe_plan(line["plan_requests"], line["plan_hits"], line["plan_repeats"])
    swap = summary.describe_swap(line["swap_out_bytes"], line["swap_in_bytes"],
                                 line["peak_swapped"], line["swap_wait_ns"])
    damage = line["damaged_at"] and "the log is damaged: what comes after these events is not known"
    for note in filter(None, (plan, swap, damage)):
        print("  " + note)
