"""Plans of small problems are optimal: OR-tools proves the optimum."""

import json
import pathlib
import random
import tempfile
import unittest

from ortools.sat.python import cp_model

from tests.wheel import installation

PROBLEMS = 200


def tight_problem(rng):
    """Two buffers end and two begin that are together as large: often no plan meets the bound."""
    live = [(0, rng.randint(2, 6)) for _ in range(rng.randint(4, 6))]
    buffers = []
    now = 0
    for now in range(1, rng.randint(5, 12)):
        (start_a, a), (start_b, b) = (live.pop(rng.randrange(len(live))) for _ in range(2))
        buffers += [(start_a, now, a), (start_b, now, b)]
        part = rng.randint(1, a + b - 1)
        live += [(now, part), (now, a + b - part)]
    return buffers + [(start, now + 1, size) for start, size in live]


def random_problem(rng):
    buffers = []
    for _ in range(rng.randint(1, 20)):
        lower = rng.randint(-10, 20)
        buffers.append((lower, lower + rng.randint(1, 15), rng.randint(1, 12)))
    return buffers


def optimum(buffers):
    """The least height, proven."""
    model = cp_model.CpModel()
    most = sum(size for _, _, size in buffers)
    height = model.new_int_var(0, most, "height")
    lifetimes, places = [], []
    for i, (lower, upper, size) in enumerate(buffers):
        offset = model.new_int_var(0, most - size, f"offset {i}")
        lifetimes.append(model.new_fixed_size_interval_var(lower, upper - lower, f"lifetime {i}"))
        places.append(model.new_fixed_size_interval_var(offset, size, f"place {i}"))
        model.add(offset + size <= height)
    model.add_no_overlap_2d(lifetimes, places)
    model.minimize(height)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if solver.solve(model) != cp_model.OPTIMAL:
        raise AssertionError(f"OR-tools found no optimum of {buffers}")
    return round(solver.objective_value)


class SmallProblems(unittest.TestCase):

    def test_are_planned_as_low_as_can_be(self):
        rng = random.Random(1)
        problems = [tight_problem(rng) if k % 2 else random_problem(rng) for k in range(PROBLEMS)]
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for k, buffers in enumerate(problems):
                files.append(pathlib.Path(folder, f"{k}.csv"))
                lines = [f"{i},{l},{u},{s}" for i, (l, u, s) in enumerate(buffers)]
                files[-1].write_text("id,lower,upper,size\n" + "\n".join(lines) + "\n")
            site = installation.Environment(self.addCleanup, frameworks=False).install()
            run = site.run("thimble", "plan", "--json", "--seconds", "20", *map(str, files))
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        results = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual(len(results), PROBLEMS)
        above_bound = 0
        for buffers, result in zip(problems, results):
            self.assertEqual(result["height"], optimum(buffers), buffers)
            above_bound += result["height"] > result["lower_bound"]
        self.assertGreater(above_bound, 10, "the problems are too easy to tell")


if __name__ == "__main__":
    unittest.main()
