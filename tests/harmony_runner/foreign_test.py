"""Models of keras.applications and keras_hub, with random weights, train as in Keras."""

import json
import unittest

from tests.harmony_runner import training


class Foreign(training.Training):

    def check(self, *names):  # pylint: disable=arguments-differ
        ended = self.environment.run("python", "tests/harmony_runner/foreign_case.py", *names,
                                     THIMBLE_CONF=training.CONF, timeout=900, **training.QUIET)
        self.assertEqual(ended.returncode, 0, ended.stderr[-4000:])
        results = json.loads(ended.stdout)
        self.assertEqual(set(results), set(names))
        for name, seen in results.items():
            print(name, seen)
            with self.subTest(model=name):
                self.assertGreater(seen["packs"], 2)
                self.assertEqual(len(set(seen["losses"])), 3)
                self.assertLess(seen["loss"], 1e-6)
                self.assertLess(seen["evaluate"], 1e-6)
                self.assertLess(seen["weights"], 1e-6)

    def test_convolutions(self):
        self.check("EfficientNetB0", "MobileNetV2")

    def test_language_models(self):
        """In keras_hub, a backbone is a model inside the model. It is replaced by its layers."""
        self.check("GPT-2", "BERT")


if __name__ == "__main__":
    unittest.main()
