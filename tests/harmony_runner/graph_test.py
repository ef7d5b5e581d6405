"""Models in models, shared parts, losses that layers add: all as in Keras, in several packs."""

import json
import unittest

from tests.harmony_runner import training


class Graphs(training.Training):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ended = cls.environment.run("python", "tests/harmony_runner/graph_cases.py",
                                        THIMBLE_CONF=training.CONF, timeout=600, **training.QUIET)

    def results(self):
        self.assertEqual(self.ended.returncode, 0, self.ended.stderr[-4000:])
        return json.loads(self.ended.stdout)

    def test_the_same_numbers_come_out(self):
        """The same numbers in fit(), in evaluate() and in all variables."""
        for case, seen in self.results().items():
            for number in ("loss", "evaluate", "weights"):
                with self.subTest(case=case, number=number):
                    self.assertLess(seen[number], 1e-6)

    def test_packs_are_as_small_as_layers(self):
        for case, seen in self.results().items():
            with self.subTest(case=case):
                self.assertGreater(seen["packs"], 1)
        stages = self.results()["models_in_models"]["stages"]
        self.assertEqual(len(stages), 8)
        self.assertEqual(max(stage.count("/") for stage in stages), 3, stages)

    def test_what_training_changes_in_two_places_is_one_stage(self):
        stages = self.results()["one_model_in_two_places"]["stages"]
        self.assertIn("shared/batch_normalization", stages)
        self.assertEqual(len(stages), 6)

    def test_only_rows_of_samples_are_regrouped(self):
        seen = self.results()
        self.assertTrue(seen["the_same_input_twice"]["regroups"])
        self.assertFalse(seen["samples_times_words"]["regroups"])
        self.assertFalse(seen["one_model_in_two_places"]["regroups"])


if __name__ == "__main__":
    unittest.main()
