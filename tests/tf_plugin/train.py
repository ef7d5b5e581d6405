"""Trains small models on TensorFlow's default device, and returns every loss exactly."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

STEPS = 8
BATCH = 16
WORDS = 100


def cnn():
    return keras.Sequential([
        keras.Input((16, 16, 3)),
        layers.Conv2D(8, 3, activation="relu", padding="same"),
        layers.BatchNormalization(),
        layers.MaxPooling2D(),
        layers.Conv2D(16, 3, activation="relu", padding="same"),
        layers.Flatten(),
        layers.Dropout(0.2),
        layers.Dense(10),
    ])


def transformer(width=32, heads=4, length=16):
    words = keras.Input((length,), dtype="int32")
    hidden = layers.Embedding(WORDS, width)(words)
    normal = layers.LayerNormalization()(hidden)
    hidden += layers.MultiHeadAttention(heads, width // heads)(
        normal, normal, use_causal_mask=True)
    normal = layers.LayerNormalization()(hidden)
    hidden += layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(normal))
    return keras.Model(words, layers.Dense(WORDS)(hidden))


def data(name, rng):
    if name == "cnn":
        return (rng.random((STEPS * BATCH, 16, 16, 3), dtype=np.float32),
                rng.integers(0, 10, (STEPS * BATCH,)))
    words = rng.integers(0, WORDS, (STEPS * BATCH, 16))
    return words, np.roll(words, -1, axis=1)


class Losses(keras.callbacks.Callback):

    def __init__(self):
        super().__init__()
        self.exact = []

    def on_train_batch_end(self, batch, logs=None):
        self.exact.append(float(logs["loss"]).hex())


def losses():
    """Exact losses of every step, by model and optimizer."""
    tf.config.experimental.enable_op_determinism()
    result = {}
    for name, build in (("cnn", cnn), ("transformer", transformer)):
        for optimizer in ("sgd", "adam"):
            keras.utils.set_random_seed(7)
            model = build()
            model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                          jit_compile=False)
            recorder = Losses()
            inputs, labels = data(name, np.random.default_rng(3))
            model.fit(inputs, labels, batch_size=BATCH, shuffle=False, verbose=0,
                      callbacks=[recorder])
            result[name, optimizer] = recorder.exact
    return result
