"""Stock TensorFlow in less memory than it needs: the same numbers to the last bit."""

import unittest

import tensorflow as tf

from tests.tf_plugin import forked
from tests.tf_plugin import swap_cases
from tests.tf_plugin import swap_models

CPU = -1  # THIMBLE_TF_CPU
CONF = "device:cpu,retry_ms:100"
PART = 0.6  # of the peak without a limit


def trained(name):
    """Returns the results of swap_models.train() and the arena's figures, or that memory ran
    out."""
    try:
        answer = swap_models.train(name)
    except tf.errors.ResourceExhaustedError:
        return "out of memory", None
    stats = forked.arena_stats(CPU)
    return answer, {field: getattr(stats, field) for field in (
        "peak_in_use", "peak_reserved", "swap_out_bytes", "swap_in_bytes", "swapped")}


def counted(case):
    """Returns the result of the case, and how many bytes left the device."""
    answer = case()
    return answer, forked.arena_stats(CPU).swap_out_bytes


class Swapping(unittest.TestCase):

    def run_model(self, name, conf):
        result = forked.run(trained, name, THIMBLE_CONF=conf)
        self.assertIsInstance(result.answer, tuple, result)
        return result

    def run_stock(self, name):
        """Trains the model on stock TensorFlow, without a limit."""
        stock = forked.run(swap_models.train, name, plugin=None)
        self.assertIsInstance(stock.answer, tuple, stock)
        self.assertEqual(len(stock.answer[0]), swap_models.STEPS, stock)
        return stock.answer

    def check(self, name):
        expected = self.run_stock(name)
        free = self.run_model(name, CONF)
        answer, figures = free.answer
        self.assertEqual(answer, expected, free)
        limit = int(PART * figures["peak_in_use"])
        conf = f"{CONF},limit:{limit}"
        self.assertEqual(self.run_model(name, conf).answer[0], "out of memory")
        swapped = self.run_model(name, conf + ",swap:auto")
        answer, figures = swapped.answer
        self.assertEqual(answer, expected, swapped)
        self.assertLessEqual(figures["peak_reserved"], limit)
        self.assertGreater(figures["swap_out_bytes"], 0)
        self.assertGreater(figures["swap_in_bytes"], 0)

    def test_nobody_meets_bytes_that_are_elsewhere(self):
        """Holders of tensors, while all idle blocks are forced to leave."""
        for case in swap_cases.CASES:
            with self.subTest(case=case.__name__):
                free = forked.run(counted, case, THIMBLE_CONF=CONF)
                swapped = forked.run(counted, case,
                                     THIMBLE_CONF=f"{CONF},limit:{swap_cases.LIMIT},swap:auto")
                self.assertIsInstance(free.answer, tuple, free)
                self.assertIsInstance(swapped.answer, tuple, swapped)
                self.assertEqual(swapped.answer[0], free.answer[0], swapped)
                self.assertGreater(swapped.answer[1], 0)

    def test_a_goal_lowers_what_is_reserved(self):
        expected, free = self.run_model("cnn", CONF).answer
        goal = int(PART * free["peak_in_use"])
        answer, figures = self.run_model("cnn", f"{CONF},swap_limit:{goal}").answer
        self.assertEqual(answer, expected)
        self.assertLess(figures["peak_reserved"], 0.8 * free["peak_reserved"])
        self.assertGreater(figures["swap_in_bytes"], 0)

    def test_a_cnn(self):
        self.check("cnn")

    def test_a_residual_net(self):
        self.check("resnet")

    def test_an_lstm(self):
        self.check("lstm")

    def test_a_transformer(self):
        self.check("transformer")


if __name__ == "__main__":
    unittest.main()
