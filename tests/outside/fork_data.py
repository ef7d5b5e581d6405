"""Trains on a Keras data set whose batches are computed by forked workers.

Keras' own tests of such data sets need PyTorch. Workers compute with TensorFlow on the parent's
tensors while the parent trains. Processes that share memory by mistake read wrong bytes or crash.
"""

import sys

import keras
import numpy
import tensorflow as tf

import recording
import train_model

BATCH, BATCHES, WIDTH, CLASSES = 8, 64, 64, 10


class Batches(keras.utils.PyDataset):

    def __init__(self, x, y):
        super().__init__(workers=2, use_multiprocessing=True)
        self._x, self._y = x, y

    def __len__(self):
        return BATCHES

    def __getitem__(self, number):
        rows = slice(number * BATCH, (number + 1) * BATCH)
        x = self._x[rows] * (number + 1.0)
        for _ in range(20):
            x = x + 1.0
        return x.numpy(), self._y[rows]


def train():
    keras.utils.set_random_seed(train_model.SEED)
    tf.config.experimental.enable_op_determinism()
    x = tf.random.stateless_uniform((BATCH * BATCHES, WIDTH), (1, 2))
    y = numpy.arange(BATCH * BATCHES) % CLASSES
    model = keras.Sequential([keras.layers.Dense(256, "relu"), keras.layers.Dense(CLASSES)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(Batches(x, y), epochs=2, shuffle=False, verbose=0)
    return {"losses": [loss.hex() for loss in history.history["loss"]],
            "weights": train_model.digest(variable.numpy() for variable in model.variables)}


def main():
    name, = sys.argv[1:]
    recorder = recording.Recorder()
    recorder.start(name)
    recorder.test(name, train())
    recorder.end(**recording.arena_figures())


if __name__ == "__main__":
    main()
