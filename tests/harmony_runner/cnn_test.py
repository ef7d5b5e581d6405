"""See training.py: a residual CNN with BatchNorm, most of which is activations."""

import unittest

from tests.harmony_runner import training


STAGES = 18  # a convolution, eight times BatchNorm and a convolution, and the head


def by_turns():
    """A plan with all convolutions on the second of two devices. The backward of a convolution
    before a sum passes one of its inputs on, which is still in memory when the next inputs could
    come."""
    tasks = [(stage, stage, (stage + 1) % 2, (8, 8), stage > 0 and stage % 2 == 0)
             for stage in range(STAGES - 2)]
    return {"batch": 16, "forward": tasks,
            "backward": [(STAGES - 2, STAGES - 1, 1, (8, 8), False), *reversed(tasks)]}


class Cnn(training.Training):

    def test_keras_alone_runs_out_of_memory(self):
        self.check_alone("cnn", devices=4)

    def test_sgd(self):
        self.check("cnn", "sgd", devices=2)

    def test_adam(self):
        self.check("cnn", "adam", devices=4)

    def test_results_that_were_inputs(self):
        self.check("cnn", "sgd", devices=2, plan=by_turns())


if __name__ == "__main__":
    unittest.main()
