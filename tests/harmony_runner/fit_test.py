"""fit(), evaluate(), predict(), save and load work as without Harmony."""

import json
import os
import unittest

from tests.wheel import installation


class Fit(unittest.TestCase):

    def test_the_same_numbers_come_out(self):
        environment = installation.Environment(self.addCleanup).install()
        ended = environment.run("python", "tests/harmony_runner/fit_cases.py", timeout=400,
                                THIMBLE_CONF="device:cpu,chunk:64KiB,retry_ms:2000",
                                TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="",
                                PYTHONPATH=os.getcwd())
        self.assertEqual(ended.returncode, 0, ended.stderr[-4000:])
        for case, seen in json.loads(ended.stdout).items():
            with self.subTest(case=case):
                self.assertEqual(len(seen["harmony"]), len(seen["keras"]))
                self.assertGreater(len(seen["keras"]), 2)
                # Half precision rounds 8000 times as much, but gradients are summed in single
                # precision.
                part = 1e-4 if case == "mixed_precision" else 1e-5
                for ours, theirs in zip(seen["harmony"], seen["keras"]):
                    self.assertAlmostEqual(ours, theirs, delta=part * abs(theirs))


if __name__ == "__main__":
    unittest.main()
