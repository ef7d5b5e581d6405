"""Runs units in modes, several at a time, and judges each test."""

import concurrent.futures

from tests.outside import compare
from tests.outside import units

EXPLAINED = units.FOLDER / "explained.csv"


def run(runner, plan, jobs, tries=compare.TRIES):
    """Returns verdicts, and explanations that no longer apply. `plan` has pairs of a unit and its
    modes."""
    judge = compare.Judge(runner, compare.read_explanations(EXPLAINED), tries)

    def through(unit, modes):
        return [verdict for mode in modes for verdict in judge.judge(unit, mode)]

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        began = [pool.submit(through, unit, modes) for unit, modes in plan]
        verdicts = [verdict for each in began for verdict in each.result()]
    return verdicts, judge.stale()
