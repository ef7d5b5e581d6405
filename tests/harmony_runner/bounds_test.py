"""No order of copies and computing takes more memory than the plan's bound."""

import os
import unittest

from tests.wheel import installation


class Bounds(unittest.TestCase):

    def test_made_up_jobs(self):
        environment = installation.Environment(self.addCleanup).install()
        ended = environment.run("python", "tests/harmony_runner/bounds_case.py", "1", "600",
                                PYTHONPATH=os.getcwd(), TF_CPP_MIN_LOG_LEVEL="3")
        self.assertEqual(ended.returncode, 0, ended.stderr[-4000:])
        self.assertRegex(ended.stdout, r"^600 cases, peak / most [\d.]+ to [\d.]+\n$")


if __name__ == "__main__":
    unittest.main()
