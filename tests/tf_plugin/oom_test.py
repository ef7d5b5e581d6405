"""Running out of memory harms nothing: neither the weights of compiled functions, nor the
process."""

import unittest

from tests.tf_plugin import forked
from tests.tf_plugin import oom_cases

TIMES = 100
ROWS = 6000  # squared: 137 MiB
FITS = 64
CONF = "device:cpu,limit:96MiB,retry_ms:0"


class OutOfMemory(unittest.TestCase):

    def test_a_compiled_function_leaves_its_variables_as_they_were(self):
        stock = forked.run(oom_cases.compiled, 0, ROWS, plugin=None)
        self.assertIsInstance(stock.answer, dict, stock)
        for conf in (CONF, CONF + ",front:bfc", CONF + ",plan:auto", CONF + ",swap:auto"):
            with self.subTest(conf=conf):
                ours = forked.run(oom_cases.compiled, TIMES, ROWS, THIMBLE_CONF=conf)
                self.assertIsInstance(ours.answer, dict, ours)
                self.assertEqual(ours.answer["refused"], TIMES, ours)
                self.assertEqual(ours.answer["after"], ours.answer["before"])
                for figure in ("before", "losses", "weights"):
                    self.assertEqual(ours.answer[figure], stock.answer[figure], ours)
                self.assertEqual(ours.lines_with("freed twice"), [])
                if "bfc" not in conf:
                    self.assertIn("limit:", ours.answer["message"])  # what would have fit

    def test_onednn_is_refused_and_does_not_crash(self):
        peak = forked.run(oom_cases.peak_of_convolutions, THIMBLE_CONF="device:cpu")
        self.assertIsInstance(peak.answer, int, peak)
        conf = f"device:cpu,limit:{peak.answer + (FITS << 19)},retry_ms:0"  # half of it left
        ours = forked.run(oom_cases.convolutions, FITS, THIMBLE_CONF=conf)
        self.assertIsInstance(ours.answer, list, ours)
        self.assertEqual(set(ours.answer), {"trained", "refused"}, ours)


if __name__ == "__main__":
    unittest.main()
