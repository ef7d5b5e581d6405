"""Reads how the memory of running programs is made up."""

import glob
import json
import os
import re
import tempfile

from thimble_gpu import text

FOLDER_PREFIX = "thimble-"  # of the folder that holds the logs while `thimble run` runs
NAME = re.compile(r"(\d+)\.log(?:\.(\d+))?\.now")
WIDTH = 32  # of a full bar, which stands for the limit
# The parts of `reserved`, in the order of allocator/README.md; their sum is exact.
PARTS = (("in use", "in_use"), ("magazines", "magazines"), ("free, small", "free_small"),
         ("free, large", "free_large"), ("spare", "spare"))


def folders():
    """Returns the folders of the programs that `thimble run` runs now for this user."""
    found = glob.glob(os.path.join(tempfile.gettempdir(), FOLDER_PREFIX + "*"))
    return sorted(filter(_is_ours, found))


def _is_ours(folder):
    try:
        return os.stat(folder).st_uid == os.getuid()
    except OSError:
        return False  # its program has just ended


def _names(folder):
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []  # its program has just ended


def _program(process):
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            words = file.read().decode(errors="replace").split("\0")
    except OSError:
        return ""  # it has just ended
    return " ".join(words).split("\n")[0].strip()[:60]


def read():
    """Returns the statistics of every device of every running program."""
    devices = []
    for folder in folders():
        for name in _names(folder):
            parts = NAME.fullmatch(name)
            if not parts:
                continue
            try:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    stats = json.load(file)
            except (OSError, ValueError):
                continue  # gone or incomplete; the next update reads it
            devices.append({"process": int(parts[1]), "device": int(parts[2] or 0),
                            "program": _program(int(parts[1])), **stats})
    return devices


def lines(stats, bar="█"):
    """Yields rows of label and text for one device; the first label is its process."""
    def rung(label, field):
        length = round(WIDTH * stats[field] / max(stats["limit"], 1))
        return label, f"{text.size(stats[field]):>12}  {bar * min(length, WIDTH)}".rstrip()

    yield str(stats["process"]), (f"device {stats['device']}, limit {text.size(stats['limit'])}  "
                                  f"{stats['program']}").rstrip()
    for label, field in PARTS:
        yield rung(label, field)
    yield rung("= reserved", "reserved")
    if stats["swapped"]:
        yield rung("on the host", "swapped")
    yield "peak", (f"{text.size(stats['peak_in_use']):>12} in use, "
                   f"{text.size(stats['peak_reserved'])} reserved")
    yield "requests", (f"{stats['allocations']:>12}, {stats['stitches']} stitched, "
                       f"{stats['out_of_memory']} out of memory")
