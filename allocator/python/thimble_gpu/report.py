"""`thimble report`: where memory went, as one HTML file."""

import ctypes
import json
import os
import sys
import tempfile

from thimble_gpu import abi
from thimble_gpu import page
from thimble_gpu import summary

SCRIPTS = ("columns.js", "history.js", "scopes.js", "timeline.js", "holders.js", "mappings.js",
           "address_map.js", "sections.js", "swaps.js", "report.js")
MOST_SECONDS = 10  # that the comparison with BFC may take


def add_to(commands):
    parser = commands.add_parser(
        "report", help="draw where memory went, from an event log",
        description="Writes one HTML file about an event log (THIMBLE_CONF=log:PATH): memory over "
        "time, who holds the peak, which pieces stitched blocks are made of, plans, swapping, and "
        "requests that were refused. It needs nothing else to be looked at.")
    parser.add_argument("log", metavar="LOG")
    parser.add_argument("-o", "--out", metavar="REPORT.html", default="report.html",
                        help="default: report.html")
    parser.add_argument("--bfc-seconds", metavar="S", type=_seconds, default=MOST_SECONDS,
                        help="how long to ask TensorFlow's own allocator what it would have needed; "
                        f"0: not at all (default: {MOST_SECONDS})")
    parser.set_defaults(function=_report)


def _seconds(text):
    seconds = float(text)
    if not 0 <= seconds <= 86400:
        raise ValueError
    return seconds


def _report(options):
    try:
        write(options.log, options.out, seconds=options.bfc_seconds)
    except (abi.ThimbleError, OSError) as error:
        print(f"thimble report: {error}", file=sys.stderr)
        return 2
    print(options.out)
    return 0


def write(log, out, title=None, comparison=None, seconds=MOST_SECONDS):
    """The page of a log. Raises ThimbleError and OSError.

    `comparison` is what BFC would have needed, if that is known already.
    """
    core = abi.installed_core()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "columns")
        info = abi.LogInfo(struct_size=ctypes.sizeof(abi.LogInfo))
        core.check(core.report_file(os.fsencode(log), os.fsencode(path), info))
        with open(path, "rb") as file:
            report = json.loads(file.readline().decode(errors="replace"))
            columns = file.read()
        figures = summary.with_shares(info)
        if comparison is None:
            comparison = summary.compare_log(core, log, figures, seconds, folder)
    report["figures"] = figures
    report["bfc"] = {"bytes": comparison.bytes, "note": comparison.note}
    title = title or os.path.basename(log)
    page.write(page.render(
        f"Where memory went: {title}", f"{figures['events']} events of {os.path.basename(log)}",
        "report.html", ("report.css",), SCRIPTS,
        page.json_data("report", report) + page.bytes_data("columns", columns)), out)
