"""Plans in stock TensorFlow on the simulated GPU: steps are learnt, packed and served."""

import os
import re
import unittest

from tests.wheel import installation

WATCH = os.path.abspath("tests/bench/watch_plan.py")
ROW = re.compile(r"^ *\d+ +(\d+) of (\d+) +\d+ +\d+ +(\d+) +([\d.]+) +[\d.]+ +([\d.]+)$",
                 re.MULTILINE)


class LivePlan(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup).install()

    def steps(self, *program, **variables):
        """Figures of each step: hits, requests, new stitches, most MiB in use, MiB reserved at its
        end."""
        ended = self.site.run("python", WATCH, *program, simulator=("--memory", "8GiB"),
                              **variables)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return [tuple(map(float, row)) for row in ROW.findall(ended.stderr)]

    def test_a_loop_is_served_from_its_plan(self):
        # Packing takes a second at most, and a step of this model a tenth of one.
        steps = self.steps("gpt2.py", "--steps", "80", "--layers", "2", "--tokens", "64", "--batch",
                           "4", TF_NUM_INTEROP_THREADS="8")
        self.assertEqual(len(steps), 80)
        planned = steps[-10:]
        hits, requests, new_stitches = (sum(step[i] for step in planned) for i in range(3))
        self.assertGreater(requests, 1000)
        self.assertGreaterEqual(hits / requests, 0.99)
        self.assertLessEqual(new_stitches, 5)
        # With eight threads, one step may hold more at once than the others.
        peak = max(step[3] for step in steps)
        self.assertLess(max(step[4] for step in planned) / peak, 1.01)

    def test_off_is_off(self):
        steps = self.steps("mlp.py", "--steps", "5", THIMBLE_CONF="plan:off")
        self.assertEqual([step[1] for step in steps], [0] * 5)


if __name__ == "__main__":
    unittest.main()
