"""A forked child has its own tensors, whatever its parent does, as on stock TensorFlow."""

import unittest

from tests.tf_plugin import fork_cases
from tests.tf_plugin import forked

MODES = {
    "plain": "device:cpu,limit:512MiB",
    "plan": "device:cpu,limit:512MiB,plan:auto",
    "swap": "device:cpu,limit:16MiB,swap:auto,retry_ms:100",
    "bfc": "device:cpu,limit:512MiB,front:bfc",
}


class Forks(unittest.TestCase):

    def test_every_program_has_the_numbers_of_stock(self):
        for case in fork_cases.CASES:
            stock = forked.run(case, plugin=None)
            self.assertIsInstance(stock.answer, (tuple, list), stock)
            for mode, conf in MODES.items():
                with self.subTest(case=case.__name__, mode=mode):
                    ours = forked.run(case, THIMBLE_CONF=conf)
                    self.assertEqual(ours.answer, stock.answer, ours)

    def test_forks_leave_nothing_behind(self):
        ours = forked.run(fork_cases.growth_by, 100, THIMBLE_CONF=MODES["plain"])
        stock = forked.run(fork_cases.growth_by, 100, plugin=None)
        self.assertIsInstance(ours.answer, tuple, ours)
        own_bytes, files, total = ours.answer
        self.assertLess(own_bytes, 1 << 20)
        self.assertEqual(files, 0)
        self.assertEqual(total, stock.answer[2])


if __name__ == "__main__":
    unittest.main()
