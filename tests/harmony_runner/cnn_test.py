"""See training.py: a residual CNN with BatchNorm, most of which is activations."""

import unittest

from tests.harmony_runner import training


LINKS = 18  # a convolution, eight times BatchNorm and a convolution, and the head


def by_turns():
    """A plan with all convolutions on the second of two devices. Backward, those before a sum hand
    on one of their inputs as a result, and it is still there when the next inputs could come."""
    tasks = [(link, link, (link + 1) % 2, (8, 8), link > 0 and link % 2 == 0)
             for link in range(LINKS - 2)]
    return {"batch": 16, "forward": tasks,
            "backward": [(LINKS - 2, LINKS - 1, 1, (8, 8), False), *reversed(tasks)]}


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
