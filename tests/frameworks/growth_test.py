"""The check for growth must find growth, and nothing else."""

import unittest

from tests.frameworks.run_workload import grows


class Growth(unittest.TestCase):

    def test_found(self):
        self.assertTrue(grows([10, 11]))
        self.assertTrue(grows([10, 20, 15, 25, 30, 35]))

    def test_not_found_where_steps_only_differ(self):
        self.assertFalse(grows([10]))
        self.assertFalse(grows([10, 10, 10]))
        self.assertFalse(grows([10, 30, 12, 30]))
        self.assertFalse(grows([30, 10, 10]))


if __name__ == "__main__":
    unittest.main()
