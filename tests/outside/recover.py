"""Continues after running out of memory, like a program that then tries a smaller batch.

    recover.py NAME [jit]

MobileNet trains on small batches, and before each tries one that does not fit. The failure must
leave no trace: stock TensorFlow, which has no limit, skips that batch. With `jit`, XLA compiles the
step. Without, ops that do not depend on the failed one have already run, also in stock; Adam would
count such a step, so an optimizer without a counter is used.
"""

import os
import sys

import keras
import numpy
import tensorflow as tf

import recording
import train_model

STEPS = 6
SIDE, SMALL, LARGE, CLASSES = 64, 4, 128, 10


def fails(model, batch):
    """Returns whether a step runs out of memory if the limit is what is already held."""
    import thimble_gpu
    thimble_gpu.trim(device="cpu")
    before = thimble_gpu.stats("cpu")
    thimble_gpu.set("limit", before["reserved"], "cpu")
    try:
        model.train_on_batch(*batch)
        return False
    except tf.errors.ResourceExhaustedError:
        return True
    finally:
        thimble_gpu.set("limit", before["limit"], "cpu")


def train(jit):
    keras.utils.set_random_seed(train_model.SEED)
    if not jit:  # Keras has one or the other
        tf.config.experimental.enable_op_determinism()
    random = numpy.random.default_rng(train_model.SEED)
    model = keras.applications.MobileNet(
        weights=None, alpha=0.25, classes=CLASSES, classifier_activation=None,
        input_shape=(SIDE, SIDE, 3), dropout=0)
    optimizer = keras.optimizers.Adam(1e-3) if jit else keras.optimizers.SGD(0.01, momentum=0.9)
    model.compile(optimizer, jit_compile=jit,
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    def batch(size):
        return (random.random((size, SIDE, SIDE, 3), "float32"),
                random.integers(0, CLASSES, size))

    large, losses = batch(LARGE), []
    for step in range(STEPS):
        if step and "THIMBLE_CONF" in os.environ:
            assert fails(model, large), "a step on a large batch fitted"
        losses.append(float(model.train_on_batch(*batch(SMALL))))
    return {"losses": [loss.hex() for loss in losses],
            "weights": train_model.digest(variable.numpy() for variable in model.variables)}


def main():
    name, *jit = sys.argv[1:]
    recorder = recording.Recorder()
    recorder.start(name)
    recorder.test(name, train(jit == ["jit"]))
    recorder.end(**recording.arena_figures())


if __name__ == "__main__":
    main()
