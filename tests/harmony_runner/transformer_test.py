"""See training.py: a transformer, with residual connections and dropout."""

import unittest

from tests.harmony_runner import training


class Transformer(training.Training):

    def test_keras_alone_runs_out_of_memory(self):
        self.check_alone("transformer", devices=4)

    def test_adamw_with_clipnorm(self):
        self.check("transformer", "adamw_clipnorm", devices=2)

    def test_global_clipnorm(self):
        self.check("transformer", "global_clipnorm", devices=4)


if __name__ == "__main__":
    unittest.main()
