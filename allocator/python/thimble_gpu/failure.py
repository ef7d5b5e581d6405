"""Finds what would have made a failed request fit: from what the arena computed at that moment, and
from replays of the run's log with other settings."""

import json
import os
import re

from thimble_gpu import conf
from thimble_gpu import offline
from thimble_gpu import progress
from thimble_gpu import text

NAME = re.compile(r"(\d+)\.log(?:\.(\d+))?\.oom")
KINDS = ("none", "true", "fragmentation", "limit", "driver")
# The options that decide where a request goes, except for the limit, which comes from the arena.
PLACING = ("chunk", "stitch", "plan")


def read(folder):
    """Returns the last failed request, by process and device."""
    found = {}
    for name in os.listdir(folder):
        parts = NAME.fullmatch(name)
        if parts:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found[tuple(int(part or 0) for part in parts.groups())] = json.load(file)
    return found


def _replay(path, failed, options, **settings):
    """Replays the log up to the failed request, in the memory that the arena had."""
    placing = {key: value for key, value in conf.entries(options) if key in PLACING}
    placing.update(settings, limit=failed["capacity"])
    asked = ",".join(f"{key}:{value}" for key, value in placing.items())
    with progress.Progress(f"replaying with {asked}"):
        return offline.run("replay", log=path, options=asked)


def _untried(failed):
    """Returns settings that were off and that a replay can test."""
    if failed["swap"]:
        return []  # a replay does not move blocks to the host
    off = [{name: value} for name, value, on in (("stitch", "on", failed["stitch"]),
                                                 ("plan", "auto", failed["plan"])) if not on]
    return off + ([{**off[0], **off[1]}] if len(off) == 2 else [])


def describe(path, failed, options):
    """Yields lines about a failed request, and about what would have made it fit."""
    yield (f"a request of {text.size(failed['requested'])} did not fit "
           f"({KINDS[failed['kind']]}): {text.size(failed['in_use'])} were in use, "
           f"{text.size(failed['missing'])} more were needed")
    fits, fits_not = [], []
    if failed["fits_limit"]:
        fits.append(f"limit:{failed['fits_limit']}")
    if failed["fits_swap"]:
        fits.append(f"swap:auto ({failed['fits_swap']})")
    elif failed["watched"] and not failed["swap"]:
        fits_not.append("swap:auto")
    untried = _untried(failed)
    as_it_was = _replay(path, failed, options) if untried else None
    if (untried and as_it_was["reached"] and not as_it_was["fits"] and
            as_it_was["failed_bytes"] == failed["requested"]):
        for settings in untried:
            name = ",".join(f"{key}:{value}" for key, value in settings.items())
            (fits if _replay(path, failed, options, **settings)["fits"] else fits_not).append(name)
    elif untried:
        yield ("other settings cannot be tested: in a replay with the same settings the request "
               "fits, or the log does not contain it")
    if fits:
        yield f"it fits with {', or '.join(fits)}"
    if fits_not:
        yield f"it does not fit with {', nor with '.join(fits_not)}"
