"""The check for growth must find growth, and nothing else."""

import unittest

from tests.frameworks.run_workload import grows


class Growth(unittest.TestCase):

    def test_found(self):
        self.assertTrue(grows([100, 120]))
        self.assertTrue(grows([100 + 5 * step for step in range(16)]))
        self.assertTrue(grows([100 + 5 * step + 5 * (step % 2) for step in range(16)]))

    def test_not_found_where_steps_only_differ(self):
        self.assertFalse(grows([100]))
        self.assertFalse(grows([100, 100, 100]))
        self.assertFalse(grows([100, 300, 120, 300]))
        self.assertFalse(grows([88, 90, 96, 95, 110, 98, 116, 99]))


if __name__ == "__main__":
    unittest.main()
