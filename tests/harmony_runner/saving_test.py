"""Activations saved on the host give the same numbers as recomputed ones."""

import json
import unittest

from tests.harmony_runner import training

PLAN = {"mode": "pp", "gpus": 2, "batch": 8,
        "forward": [{"first": 0, "last": 3, "gpu": 0, "microbatches": [4, 4]},
                    {"first": 4, "last": 5, "gpu": 1, "microbatches": [8]}],
        "backward": [{"first": 6, "last": 7, "gpu": 0, "microbatches": [8], "keep": [], "swap": []},
                     {"first": 3, "last": 5, "gpu": 1, "microbatches": [8], "segments": [3, 5],
                      "keep": [], "swap": [4, 5]},
                     {"first": 0, "last": 2, "gpu": 0, "microbatches": [4, 4], "segments": [0, 1],
                      "keep": [1, 2], "swap": []}]}
READ = """
    import json, sys
    from thimble_gpu.harmony.plans import Plan
    plan = Plan.from_json(sys.stdin.read())
    print(json.dumps([[[task.first, task.last, task.gpu, task.saved] for task in tasks]
                      for tasks in (plan.forward, plan.backward)]))
"""


class Saving(training.Training):

    def compare(self, model):
        ended = self.environment.run("python", "tests/harmony_runner/saving_case.py", model,
                                     THIMBLE_CONF=training.CONF, timeout=300, **training.QUIET)
        self.assertEqual(ended.returncode, 0, ended.stderr[-4000:])
        saved, again = json.loads(ended.stdout)
        self.assertEqual(saved["losses"], again["losses"])
        self.assertLess(saved["losses"][-1], saved["losses"][0])
        self.assertNotIn("saved", again["explanation"])
        print(model, "peak / predicted", saved["ratios"])
        return saved

    def check(self, model):  # pylint: disable=arguments-differ
        saved = self.compare(model)
        self.assertEqual(saved["explanation"].count("backward, saved"), 2)
        for ratio in saved["ratios"]:
            self.assertAlmostEqual(ratio, 1, delta=0.05, msg=saved["explanation"])

    def test_a_residual_model_with_state(self):
        self.check("cnn")

    def test_dropout(self):
        self.check("transformer")

    def test_what_cannot_be_saved_is_computed_again(self):
        """An LSTM's pack cannot be saved; the pack of the layers after it can."""
        explanation = self.compare("recurrent")["explanation"]
        self.assertRegex(explanation, "backward +embedding to lstm")
        self.assertEqual(explanation.count("backward, saved"), 1)

    def test_a_plan_says_what(self):
        """Forward and backward are cut where saving begins and ends, and at forward's own
        borders."""
        ended = self.environment.python(READ, stdin=json.dumps(PLAN))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        forward, backward = json.loads(ended.stdout)
        self.assertEqual(forward, [[0, 0, 0, False], [1, 2, 0, True], [3, 3, 0, False],
                                   [4, 4, 1, True], [5, 5, 1, True]])
        self.assertEqual(backward, [[6, 7, 0, False], [5, 5, 1, True], [4, 4, 1, True],
                                    [3, 3, 1, False], [1, 2, 0, True], [0, 0, 0, False]])


if __name__ == "__main__":
    unittest.main()
