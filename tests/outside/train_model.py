"""Trains a model for a few steps and records its losses, weights and predictions.

    train_model.py NAME [unoptimized]

On the CPU, every run gives the same numbers, which are compared bit by bit. The simulated GPU
computes nothing, so there the answer is only that all steps were done. "unoptimized" turns off
TensorFlow's graph optimizer.
"""

import hashlib
import sys

import keras
import numpy
import tensorflow as tf

import models
import recording

STEPS = 3
BATCH = 8
SEED = 17


def digest(arrays):
    summed = hashlib.sha256()
    for array in arrays:
        summed.update(numpy.ascontiguousarray(array).tobytes())
    return summed.hexdigest()[:16]


def train(name):
    keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    random = numpy.random.default_rng(SEED)
    model = models.make(name)
    model.compile(keras.optimizers.Adam(1e-3),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    batches = [(models.inputs(model, BATCH, random), random.integers(0, models.CLASSES, BATCH))
               for _ in range(STEPS)]
    losses = [float(model.train_on_batch(x, y)) for x, y in batches]
    if tf.config.list_physical_devices("GPU"):
        return {"steps": len(losses)}
    assert numpy.isfinite(losses).all(), f"losses {losses} prove nothing"
    return {"losses": [loss.hex() for loss in losses],
              "weights": digest(variable.numpy() for variable in model.variables),
              "optimizer": digest(variable.numpy() for variable in model.optimizer.variables),
              "predicted": digest([model.predict_on_batch(batches[0][0])])}


def main():
    name, *options = sys.argv[1:]
    assert options in ([], ["unoptimized"]), options
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": bool(options)})
    recorder = recording.Recorder()
    recorder.start(name)
    try:
        recorder.test(name, train(name))
    except tf.errors.ResourceExhaustedError as error:
        recorder.test(name, "out of memory", said=error.message)
    recorder.end(**recording.arena_figures())


if __name__ == "__main__":
    main()
