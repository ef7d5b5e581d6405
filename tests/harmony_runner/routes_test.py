"""Direct copies between devices and copies over the host give the same numbers."""

import json
import unittest

from tests.harmony_runner import training


class Routes(training.Training):

    def compare(self, model):
        ended = self.environment.run("python", "tests/harmony_runner/routes_case.py", model,
                                     THIMBLE_CONF=training.CONF, timeout=300, **training.QUIET)
        self.assertEqual(ended.returncode, 0, ended.stderr[-4000:])
        direct, over_host = json.loads(ended.stdout)
        for name in ("losses", "predicted"):
            self.assertEqual(direct[name], over_host[name])
        self.assertLess(direct["losses"][-1], direct["losses"][0])
        self.assertEqual(over_host["direct"], 0)
        self.assertEqual(direct["direct"] + direct["host"], over_host["host"])
        return direct

    def test_a_residual_model_with_state(self):
        """16 x 24 x 24 x 64 floats at each border: forward, gradient, and once kept for
        backward."""
        border = 16 * 24 * 24 * 64 * 4
        seen = self.compare("cnn")
        self.assertEqual((seen["direct"], seen["host"]), (8 * border, 2 * border))

    def test_dropout(self):
        self.assertGreater(self.compare("transformer")["direct"], 0)


if __name__ == "__main__":
    unittest.main()
