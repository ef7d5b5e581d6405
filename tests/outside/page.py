"""The one page that `./dev outside` writes: counts per mode, then everything that differs."""

import collections
import importlib.metadata
import re

from tests.outside import compare
from tests.outside import modes

KINDS = (compare.SAME, compare.EXPLAINED, compare.UNSTABLE, compare.DEFECT)
PACKAGES = ("tensorflow", "keras", "keras-hub", "jax", "flax", "optax")
WORDS = {
    "plain": "all memory it wants",
    "plan": "`plan:auto`",
    modes.SWAP: f"`swap:auto`, {modes.PART:.0%} of its own peak",
    "bfc": "`front:bfc`",
    modes.GPU: "simulated GPU, which computes nothing",
}
# Lines of an out-of-memory report that give the reason, the preferred ones first.
REASON = re.compile(r"^\s*(swapping .*|not with .*|needs .*|requested .*)$", re.MULTILINE)


def why(verdict):
    """Returns the reason in an out-of-memory report, or the last line of output."""
    lines = [line.strip() for line in REASON.findall(verdict.said)]
    if lines:
        return "; ".join(dict.fromkeys(lines))
    said = [line for line in verdict.said.splitlines() if line.strip()]
    return said[-1].strip() if said else ""


def cell(text, most=400):
    """Text that a table of Markdown can hold."""
    text = str(text).replace("\n", " ").replace("|", "\\|")
    return text if len(text) <= most else text[:most] + " …"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(cell, row)) + " |" for row in rows])


def mib(count):
    return f"{count / (1 << 20):.0f} MiB"


class Page:

    def __init__(self, verdicts, stale, seconds):
        self._verdicts = verdicts
        self._stale = stale
        self._seconds = seconds
        self._counts = collections.Counter((v.suite, v.mode, v.kind) for v in verdicts)

    @property
    def is_well(self):
        return bool(self._verdicts) and not self._stale and not self._of(compare.DEFECT)

    def _of(self, kind):
        return [verdict for verdict in self._verdicts if verdict.kind == kind]

    def _rows(self):
        for suite, mode in dict.fromkeys((v.suite, v.mode) for v in self._verdicts):
            counts = [self._counts[suite, mode, kind] for kind in KINDS]
            programs = len({v.unit for v in self._verdicts if (v.suite, v.mode) == (suite, mode)})
            yield suite, mode, programs, sum(counts), *counts

    def summary(self):
        lines = [f"{suite}, {mode}: {programs} programs, {tests} tests, " +
                 ", ".join(f"{count} {kind}" for count, kind in zip(counts, KINDS) if count)
                 for suite, mode, programs, tests, *counts in self._rows()]
        lines += [f"no longer true: {e.suite}, {e.mode}, {e.test}: {e.reason}"
                  for e in self._stale]
        lines += [f"defect: {v.suite}, {v.mode}, {v.test}: {cell(v.answer, 60)}"
                  for v in self._of(compare.DEFECT)]
        if not self._verdicts:
            lines.append("nothing was run: no test, model or program has such a name")
        return "\n".join(lines)

    def text(self):
        versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
        parts = [
            "# What others wrote, on Thimble",
            f"{versions}. This run took {self._seconds / 60:.0f} minutes; what an earlier run had "
            "done was not run again.",
            "Every test is compared with the same one in stock TensorFlow or JAX: how it ends; for "
            "models losses, weights, optimizer state and predictions bit by bit; for JAX programs "
            "the order and size of their requests. That a program leaves well is a test, too.",
            table(("", "mode", "what is set", "programs", "tests", *KINDS),
                  ((suite, mode, WORDS[mode], *counts)
                   for suite, mode, *counts in self._rows()))]
        parts += self._in_stock()
        for kind, head in ((compare.DEFECT, "Defects"), (compare.EXPLAINED, "Explained"),
                           (compare.UNSTABLE, "Unstable in stock")):
            parts += self._differences(kind, head)
        if self._stale:
            parts += ["## Explanations that no longer apply", "Delete them from explained.csv.",
                      table(("programs", "mode", "test", "reason"),
                            ((e.suite, e.mode, e.test, e.reason) for e in self._stale))]
        parts += self._models()
        return "\n\n".join(parts) + "\n"

    def _in_stock(self):
        """Counts how Keras' tests end in stock; a test that is skipped there proves little."""
        ends = collections.Counter(str(answer).partition(":")[0] for answer in
                                   {v.test: v.stock for v in self._verdicts
                                    if v.suite == "keras" and "::" in v.test}.values())
        if not ends:
            return []
        return ["Keras' tests end in stock so: " + ", ".join(
            f"{count} {end}" for end, count in ends.most_common()) + "."]

    def _differences(self, kind, head):
        found = self._of(kind)
        if not found:
            return []
        return [f"## {head}", table(
            ("programs", "mode", "test", "stock", "here", "what it said", "why"),
            ((v.suite, v.mode, v.test, cell(v.stock, 80), cell(v.answer, 80), why(v), v.reason)
             for v in found))]

    def _models(self):
        """Every model in every mode."""
        found = [v for v in self._verdicts if v.suite == "models" and v.test == v.unit]
        if not found:
            return []
        columns = list(dict.fromkeys(v.mode for v in found))
        kinds = {(v.test, v.mode): v for v in found}
        rows = []
        for name in dict.fromkeys(v.test for v in found):
            row = [name]
            for mode in columns:
                verdict = kinds.get((name, mode))
                row.append("" if verdict is None else
                           verdict.kind if verdict.kind in (compare.SAME, compare.UNSTABLE) else
                           f"{verdict.kind}: {cell(verdict.answer, 40)}")
            figures = kinds[name, columns[0]].figures
            rows.append((*row, mib(figures.get("peak_in_use", 0)),
                         mib(self._swapped(kinds, name))))
        return ["## Models", table(("model", *columns, "peak", "swapped out"), rows)]

    @staticmethod
    def _swapped(kinds, name):
        verdict = kinds.get((name, modes.SWAP))
        return verdict.figures.get("swap_out_bytes", 0) if verdict else 0
