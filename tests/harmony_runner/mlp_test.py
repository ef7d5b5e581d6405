"""See training.py: an MLP, most of which is weights."""

import unittest

from tests.harmony_runner import training


class Mlp(training.Training):

    def test_keras_alone_runs_out_of_memory(self):
        self.check_alone("mlp", devices=4)

    def test_sgd(self):
        self.check("mlp", "sgd", devices=2)

    def test_adam(self):
        self.check("mlp", "adam", devices=2)

    def test_adamw_with_clipnorm(self):
        self.check("mlp", "adamw_clipnorm", devices=4)

    def test_global_clipnorm(self):
        self.check("mlp", "global_clipnorm", devices=2)

    def test_shares_of_the_samples(self):
        self.check("mlp", "adam", devices=2, mode="dp")


if __name__ == "__main__":
    unittest.main()
