"""Programs that run out of memory and continue."""

import hashlib

import keras
import numpy as np
import tensorflow as tf

from tests.tf_plugin import forked

CPU = -1  # THIMBLE_TF_CPU


def digest(model):
    return hashlib.sha256(b"".join(w.tobytes() for w in model.get_weights())).hexdigest()


def _model():
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.layers.Dense(64, "relu"), keras.layers.Dense(64, "relu"),
                              keras.layers.Dense(1)])
    model.compile("adam", "mse", jit_compile=True)
    x = np.random.default_rng(0).normal(size=(64, 128)).astype("float32")
    model.fit(x, x[:, :1], batch_size=32, epochs=1, verbose=0, shuffle=False)
    return model, x


@tf.function(jit_compile=True)
def _step(model_variables, x):
    # Its temporary is x.shape[0] squared; every variable is updated, so XLA is lent its buffer.
    temporary = tf.sort(tf.matmul(x, x, transpose_b=True))
    for variable in model_variables:
        variable.assign(variable * 0.99 + tf.reduce_sum(temporary) * 1e-9)
    return tf.reduce_sum(temporary)


def compiled(times, rows):
    """Weights before, after `times` refusals of a compiled function with a temporary of rows
    squared, and after training on; how many were refused, and what the last one said."""
    model, x = _model()
    variables = list(model.trainable_variables)
    values = [v.value for v in variables]
    _step(values, tf.ones((8, 16)))
    before = digest(model)
    refused, message = 0, ""
    for _ in range(times):
        try:
            _step(values, tf.ones((rows, 16)))
        except tf.errors.ResourceExhaustedError as error:
            refused, message = refused + 1, str(error)
    after = digest(model)
    losses = model.fit(x, x[:, :1], batch_size=32, epochs=3, verbose=0, shuffle=False)
    return {"before": before, "after": after, "losses": losses.history["loss"],
            "weights": digest(model), "refused": refused, "message": message}


def peak_of_convolutions():
    """Bytes that the CNN takes at its peak. A part of it, the workspaces of convolutions, depends on
    the processor."""
    assert convolutions(2) == ["trained"]
    return forked.arena_stats(CPU).peak_reserved


def convolutions(megabytes):
    """Trains a CNN of oneDNN's kernels with less and less memory left."""
    keras.utils.set_random_seed(5)
    model = keras.Sequential([
        keras.layers.Conv2D(32, 3, activation="relu", padding="same"), keras.layers.MaxPooling2D(),
        keras.layers.DepthwiseConv2D(3), keras.layers.BatchNormalization(),
        keras.layers.Conv2D(64, 3, activation="relu"), keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(10)])
    model.compile("sgd", "mse", jit_compile=False)
    x = np.random.default_rng(1).normal(size=(32, 64, 64, 3)).astype("float32")
    y = np.zeros((32, 10), "float32")
    outcomes = []
    for held_mib in range(0, megabytes, 2):
        try:
            held = tf.zeros((held_mib << 18,))
            model.train_on_batch(x, y)
            outcomes.append("trained")
            del held
        except tf.errors.ResourceExhaustedError as error:
            outcomes.append("refused" if "thimble" in str(error) else str(error))
    return outcomes
