"""`thimble report`: draws where memory went, as one HTML file."""

import os

from thimble_gpu import abi
from thimble_gpu import columns
from thimble_gpu import export
from thimble_gpu import page
from thimble_gpu import progress
from thimble_gpu import summary
from thimble_gpu import temporary
from thimble_gpu import text

SCRIPTS = ("columns.js", "history.js", "scopes.js", "layers.js", "timeline.js", "holders.js",
           "mappings.js", "address_map.js", "planned_step.js", "sections.js", "swaps.js",
           "report.js")
MOST_SECONDS = 10  # for the comparison with BFC


def add_to(commands):
    parser = commands.add_parser(
        "report", help="draw where memory went, from an event log",
        description="Writes one HTML file about an event log (THIMBLE_CONF=log:PATH): memory over "
        "time, who holds the peak, which pieces stitched blocks are made of, plans, swapping, and "
        "requests that were refused. The file is complete in itself.")
    parser.add_argument("log", metavar="LOG")
    parser.add_argument("-o", "--out", metavar="REPORT.html",
                        help="default: report.html, if no other format is asked for")
    parser.add_argument("--bfc-seconds", metavar="S", type=_seconds, default=MOST_SECONDS,
                        help="how long to compute what TensorFlow's own allocator would have "
                        f"needed; 0: skip it (default: {MOST_SECONDS})")
    for name, (metavar, meaning, _) in export.FORMATS.items():
        parser.add_argument("--" + name, metavar=metavar, help=meaning)
    parser.set_defaults(function=_report)


def _seconds(value):
    seconds = float(value)
    if not 0 <= seconds <= 86400:
        raise ValueError
    return seconds


def _report(options):
    exports = {name: getattr(options, name) for name in export.FORMATS if getattr(options, name)}
    out = options.out or (None if exports else "report.html")
    try:
        with progress.Progress(options.log):
            log = columns.Columns(options.log)
        for name, path in exports.items():
            with progress.Progress(path):
                export.FORMATS[name][2](log, path)
            print(path, flush=True)
        if out is not None:
            _write(log, options.log, out, None, None, options.bfc_seconds)
            print(out)
    except abi.ThimbleError as error:
        text.tell(f"thimble report: {error}")
        return 2
    if not log.figures["complete"]:
        text.tell(f"thimble report: {log.figures['note']}")
    return summary.DAMAGED if log.figures["damaged_at"] else 0


def write(path, out, title, comparison):
    """Writes the page of a log whose comparison with BFC is known. Raises ThimbleError."""
    _write(columns.Columns(path), path, out, title, comparison, 0)


def _write(log, path, out, title, comparison, seconds):
    if comparison is None:
        with temporary.folder() as (folder, _):
            comparison = summary.compare_log(path, log.figures, seconds, folder)
    name = os.path.basename(path)
    report = {**log.header, "figures": log.figures,
              "bfc": {"bytes": comparison.bytes, "note": comparison.note}}
    page.write(page.render(
        f"Where memory went: {title or name}", f"{log.figures['events']} events of {name}",
        "report.html", ("report.css",), SCRIPTS,
        page.json_data("report", report) + page.bytes_data("columns", log.data)), out)
