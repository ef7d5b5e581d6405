"""See training.py: a residual CNN with BatchNorm, most of which is activations."""

import textwrap
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


# TensorFlow computes the gradient of a filter in a buffer that fills the processor's last cache,
# however small the convolution.
SMALLEST = """
    import tensorflow as tf
    import thimble_gpu
    tf.config.threading.set_intra_op_parallelism_threads(1)
    image, weights = tf.zeros((1, 8, 8, 1)), tf.Variable(tf.zeros((3, 3, 1, 1)))
    with tf.GradientTape() as tape:
        result = tf.nn.conv2d(image, weights, 1, "SAME")
    tape.gradient(result, weights)
    print(thimble_gpu.stats("cpu")["peak_in_use"])
"""


class Cnn(training.Training):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        ended = cls.environment.run("python", "-c", textwrap.dedent(SMALLEST),
                                    THIMBLE_CONF=training.CONF, **training.QUIET)
        cls.workspace = int(ended.stdout)

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
