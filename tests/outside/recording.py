"""A program's record while it runs: one line of JSON each, so that a crash loses nothing.

    {"key": ...}                                  what the file is about; another key: start anew
    {"start": TEST}                               a test begins
    {"test": TEST, "answer": ..., "note": {...}}  and has ended; answers are compared, notes shown
    {"end": {...}}                                the program has ended, with its figures
"""

import json
import os
import time

VARIABLE = "OUTSIDE_RECORD"  # its path, for the program


class Recorder:
    """The program's side."""

    def __init__(self, path=None):
        self._path = path or os.environ[VARIABLE]
        self._began = time.monotonic()

    def _write(self, line):
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def key(self, key):
        self._write({"key": key})

    def start(self, test):
        self._began = time.monotonic()
        self._write({"start": test})

    def test(self, test, answer, **note):
        note["seconds"] = round(time.monotonic() - self._began, 1)
        self._write({"test": test, "answer": answer, "note": note})

    def end(self, **figures):
        self._write({"end": figures})


class Record:
    """What is written there now."""

    def __init__(self, path):
        self.key = None
        self.tests = {}  # name: (answer, note)
        self.unfinished = None
        self.figures = None  # those of the end
        try:
            with open(path, encoding="utf-8") as file:
                for line in file:
                    self._read(json.loads(line))
        except FileNotFoundError:
            pass

    def _read(self, line):
        if "key" in line:
            self.key = line["key"]
        elif "start" in line:
            self.unfinished = line["start"]
        elif "test" in line:
            self.tests[line["test"]] = (line["answer"], line["note"])
            self.unfinished = None
        else:
            self.figures = line["end"]


def arena_figures():
    """Figures of the arena that serves this process; empty if none does."""
    try:
        import thimble_gpu
    except ImportError:
        return {}
    for device in ("cpu", 0):
        try:
            stats = thimble_gpu.stats(device)
        except thimble_gpu.NotActive:
            continue
        return {name: stats[name] for name in (
            "allocations", "peak_in_use", "peak_reserved", "swap_out_bytes", "out_of_memory",
            "plans")}
    return {}
