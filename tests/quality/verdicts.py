"""Outcomes of mutants: a file of JSON lines, explanations of survivors, and the table."""

import collections
import csv
import json
import pathlib

from tests.quality import lcov

KILLED, SURVIVED, NOT_BUILT = "killed", "survived", "not built"
LEAST = 85  # percent that must be killed
EXPLAINED = pathlib.Path(__file__).with_name("survivors.csv")


class Results:
    """Appended to as soon as something is known, so that an interrupted run goes on.

    A mutant that was killed stays so while its file is the same: tests are added, not weakened. One
    that survived is tried again as soon as anything has changed.
    """

    def __init__(self, path):
        self._path = path
        self._rows = []
        if path.exists():
            self._rows = [json.loads(line) for line in path.read_text().splitlines()]

    @staticmethod
    def _is(row, mutant):
        return (row["path"], row["before"], row["after"], row["nth"]) == mutant.key

    def of(self, mutant, tree):
        """What became of the mutant, if that holds in this tree, or None."""
        for row in reversed(self._rows):
            same = (row["tree"] == tree.digest if row["outcome"] == SURVIVED else
                    row["file"] == tree.digests[mutant.path])
            if same and self._is(row, mutant):
                return row
        return None

    def killer(self, mutant):
        """The test that killed it in any state of the tree, or None."""
        rows = [row["by"] for row in self._rows if self._is(row, mutant) and row["by"]]
        return rows[-1] if rows else None

    def add(self, mutant, tree, outcome, by):
        row = {"tree": tree.digest, "file": tree.digests[mutant.path], "path": mutant.path,
               "line": mutant.line, "nth": mutant.nth, "operator": mutant.operator,
               "before": mutant.before, "after": mutant.after, "outcome": outcome, "by": by}
        self._rows.append(row)
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        return row


def explanations(path=EXPLAINED):
    with path.open(newline="") as file:
        return {(row["path"], row["before"], row["after"]): row["why"]
                for row in csv.DictReader(file)}


def stale(root, explained, rows):
    """Explanations of what is no longer in the tree, or is killed."""
    killed = {_place(row) for row in rows if row["outcome"] == KILLED}
    for key in explained:
        path, before, _ = key
        file = root / path
        if not file.exists() or before not in (line.strip() for line in
                                               file.read_text().splitlines()):
            yield f"{path}: no line is '{before}'"
        elif key in killed:
            yield f"{path}: '{before}' is killed"


def _place(row):
    return row["path"], row["before"], row["after"]


def table(rows):
    counts = collections.defaultdict(collections.Counter)
    for row in rows:
        for name in (row["path"].split("/")[1], "all"):
            counts[name][row["outcome"]] += 1
    yield f"{'folder':8}  {'mutants':>7}  {'killed':>6}  {'share':>7}"
    for name in sorted(counts, key=lambda name: name == "all"):
        killed, all_ = counts[name][KILLED], counts[name].total()
        yield f"{name:8}  {all_:7}  {killed:6}  {lcov.percent(killed, all_):5.1f} %"


def survivors(rows, explained):
    for row in rows:
        if row["outcome"] == SURVIVED:
            why = explained.get(_place(row), "not explained: a test is missing")
            yield (f"{row['path']}:{row['line']} ({row['operator']})\n"
                   f"  - {row['before']}\n  + {row['after']}\n  {why}")


def is_well(rows, explained):
    killed = sum(row["outcome"] == KILLED for row in rows)
    return (lcov.percent(killed, len(rows)) >= LEAST and
            all(row["outcome"] == KILLED or _place(row) in explained for row in rows))
