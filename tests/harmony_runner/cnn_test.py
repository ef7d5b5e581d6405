"""See training.py: a residual CNN with BatchNorm, most of which is activations."""

import unittest

from tests.harmony_runner import training


class Cnn(training.Training):

    def test_keras_alone_runs_out_of_memory(self):
        self.check_alone("cnn", devices=4)

    def test_sgd(self):
        self.check("cnn", "sgd", devices=2)

    def test_adam(self):
        self.check("cnn", "adam", devices=4)


if __name__ == "__main__":
    unittest.main()
