"""Finds answers that differ from stock, and judges each difference: explained, unstable or a
defect."""

import csv
import dataclasses
import re

from tests.outside import modes

SAME, EXPLAINED, UNSTABLE, DEFECT = "same", "explained", "unstable in stock", "defect"
TRIES = 3  # runs of stock and of the mode, in turn, after an answer differed


@dataclasses.dataclass
class Explanation:
    """A row of explained.csv: mode, test, the text that it shows, and the reason."""
    suite: str
    mode: str
    test: str
    shows: str  # a regular expression; found in the answer or in what the test said
    reason: str

    def is_about(self, suite, mode, test):
        return (self.suite, self.mode, self.test) == (suite, mode, test)

    def holds(self, outcome):
        answer, note = outcome
        return re.search(self.shows, f"{answer}\n{note.get('said', '')}") is not None


def read_explanations(path):
    with open(path, encoding="utf-8", newline="") as file:
        return [Explanation(**row) for row in csv.DictReader(file)]


@dataclasses.dataclass
class Verdict:
    """About one test in one mode."""
    suite: str
    unit: str
    mode: str
    test: str
    kind: str
    stock: object = None
    answer: object = None
    said: str = ""
    reason: str = ""  # why it is explained; how often it differs
    figures: dict = dataclasses.field(default_factory=dict)  # of the whole unit


MISSING = ("did not run", {})


class Judge:

    def __init__(self, runner, explanations, tries=TRIES):
        self._runner = runner
        self._explanations = explanations
        self._tries = tries
        self._applied = []
        self._seen = set()  # suite, mode, test that were judged

    def judge(self, unit, mode):
        """A verdict for every test of the unit in stock or in the mode."""
        stock = self._runner.run(unit, modes.base_of(mode))
        ours = self._runner.run(unit, mode)
        tests = dict.fromkeys((*stock.tests, *ours.tests))
        if unit.leaving not in ours.tests:  # it did not come so far, which is a difference already
            tests.pop(unit.leaving, None)
        verdicts = [self._one(unit, mode, test, stock.tests.get(test, MISSING),
                              ours.tests.get(test, MISSING)) for test in tests]
        verdicts += self._served(unit, mode, ours)
        for verdict in verdicts:
            verdict.figures = ours.figures
        return verdicts

    def _served(self, unit, mode, ours):
        """A run that Thimble did not serve proves nothing about it."""
        if unit.leaving not in ours.tests or ours.figures.get("allocations"):
            return []
        return [Verdict(unit.suite, unit.name, mode, f"{unit.name} (served)", DEFECT, "",
                        "not served by Thimble", str(ours.figures))]

    def _one(self, unit, mode, test, stock, ours):
        self._seen.add((unit.suite, mode, test))
        verdict = Verdict(unit.suite, unit.name, mode, test, SAME, stock[0], ours[0],
                          ours[1].get("said", ""))
        if test == unit.name and isinstance(stock[0], str):
            verdict.kind, verdict.reason = DEFECT, "it does not even run in stock: proves nothing"
            return verdict
        if stock[0] == ours[0]:
            return verdict
        for explanation in self._explanations:
            if explanation.is_about(unit.suite, mode, test) and explanation.holds(ours):
                self._applied.append(explanation)
                verdict.kind, verdict.reason = EXPLAINED, explanation.reason
                return verdict
        verdict.kind, verdict.reason = self._again(unit, mode, test, stock[0])
        return verdict

    def _again(self, unit, mode, test, expected):
        """Runs stock and the mode in turn. A test whose stock runs differ proves nothing."""
        narrow = unit.narrow and unit.narrow(test)
        unit = narrow or unit
        stock, ours = [] if narrow else [expected], []
        for attempt in range(1, self._tries + 1):
            for answers, where in (stock, modes.base_of(mode)), (ours, mode):
                answers.append(self._answer(unit, where, test, attempt))
            if any(answer != stock[0] for answer in stock):
                return self._steadily(unit, mode, test) or (UNSTABLE, f"stock runs answer {stock}")
        differ = sum(answer != stock[0] for answer in ours)
        if not differ and stock[0] != expected:
            return UNSTABLE, f"it depends on what ran before: by itself, stock answers {stock[0]}"
        return DEFECT, (f"it differs again in {differ} of {self._tries} runs; "
                        f"{self._tries} stock runs agree")

    def _steadily(self, unit, mode, test):
        """Compares the mode with two stock runs that agree, if the unit has a variant for that."""
        if unit.steady is None:
            return None
        base = modes.base_of(mode)
        stock = [self._answer(unit.steady, base, test, attempt) for attempt in range(2)]
        if stock[0] != stock[1]:
            return None
        kind = SAME if self._answer(unit.steady, mode, test) == stock[0] else DEFECT
        return kind, f"compared as '{unit.steady.name}', because stock runs differ otherwise"

    def _answer(self, unit, mode, test, attempt=0):
        return self._runner.run(unit, mode, attempt).tests.get(test, MISSING)[0]

    def stale(self):
        """Returns explanations of tests that ran but do not differ in that way."""
        return [explanation for explanation in self._explanations
                if explanation not in self._applied
                and (explanation.suite, explanation.mode, explanation.test) in self._seen]
