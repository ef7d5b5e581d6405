"""Typical uses of a model, with Harmony and as in Keras: the numbers must be the same.

Each case returns a list of numbers. `attach` is harmony.attach with a plan, or does nothing.
"""

import json
import os
import sys
import tempfile

from thimble_gpu import harmony

DEVICES = harmony.cpu_devices(2)

import keras  # pylint: disable=wrong-import-position
import numpy as np  # pylint: disable=wrong-import-position
from keras import layers  # pylint: disable=wrong-import-position

from thimble_gpu.harmony.chain import Chain  # pylint: disable=wrong-import-position

from tests.harmony_runner import compared  # pylint: disable=wrong-import-position

SAMPLES, BATCH, MICROBATCH = 40, 16, 4  # the last batch of an epoch has 8


def attach_with_plan(model, mode="pp", packs=3):
    plan = compared.plan_of(len(Chain(model).stages), BATCH, MICROBATCH, packs, mode)
    return harmony.attach(model, devices=DEVICES, memory="64MiB", plan=plan)


def as_keras(model, **_):
    del model


def data(classes=5, features=12):
    rng = np.random.default_rng(1)
    return (rng.standard_normal((SAMPLES, features), dtype=np.float32),
            rng.integers(0, classes, SAMPLES))


def sparse_loss():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def dense_model(**options):
    return keras.Sequential([keras.Input((12,))] + [
        layers.Dense(32, activation="tanh", **options) for _ in range(4)] + [layers.Dense(5)])


def numbers_of(history):
    return [float(value) for name in sorted(history.history) for value in history.history[name]]


def fit_with_everything(attach):
    model = dense_model(kernel_regularizer="l2")
    schedule = keras.optimizers.schedules.ExponentialDecay(1e-2, 3, 0.8)
    model.compile(keras.optimizers.Adam(schedule), sparse_loss(), metrics=["accuracy"])
    attach(model)
    x, y = data()
    stop = keras.callbacks.EarlyStopping("val_loss", patience=2, restore_best_weights=True)
    history = model.fit(x, y, batch_size=BATCH, epochs=4, shuffle=False, verbose=0,
                        validation_data=(x[::-1], y), callbacks=[stop],
                        sample_weight=np.linspace(0.5, 1.5, SAMPLES, dtype=np.float32))
    tested = model.evaluate(x, y, batch_size=BATCH, verbose=0)
    predicted = model.predict(x, batch_size=BATCH, verbose=0)
    return numbers_of(history) + tested + [float(np.abs(predicted).sum()),
                                           int(model.optimizer.iterations.numpy())]


def class_weights_and_changing_rate(attach):
    model = dense_model()
    model.compile(keras.optimizers.RMSprop(1e-3), sparse_loss(), weighted_metrics=["accuracy"])
    attach(model)
    x, y = data()
    slower = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5)
    history = model.fit(x, y, batch_size=BATCH, epochs=3, shuffle=False, verbose=0,
                        class_weight={i: 1.0 + i for i in range(5)}, callbacks=[slower])
    return numbers_of(history)


def several_inputs_and_outputs(attach):
    """A residual connection over all packs, a layer in two places and an output in the middle."""
    left, right = keras.Input((12,), name="left"), keras.Input((12,), name="right")
    shared = layers.Dense(16, activation="relu", kernel_regularizer="l2", name="shared")
    joined = layers.Concatenate()([shared(left), shared(right)])
    early = layers.Dense(5, name="early")(joined)
    hidden = joined
    for _ in range(3):
        hidden = layers.Add()([hidden, layers.Dense(32, activation="tanh")(hidden)])
    late = layers.Dense(1, name="late")(layers.Concatenate()([hidden, left]))
    model = keras.Model({"left": left, "right": right}, {"early": early, "late": late})
    model.compile(keras.optimizers.Adam(1e-2), {"early": sparse_loss(), "late": "mse"},
                  loss_weights={"early": 0.7, "late": 0.3}, metrics={"early": ["accuracy"]})
    attach(model, packs=4)
    # Whole batches: in Keras, the single losses of a smaller batch count as much.
    x, y = (array[:2 * BATCH] for array in data())
    history = model.fit({"left": x, "right": x[::-1]}, {"early": y, "late": x[:, :1]},
                        batch_size=BATCH, epochs=3, shuffle=False, verbose=0)
    return numbers_of(history)


def masks_and_recurrence(attach):
    words = np.random.default_rng(2).integers(0, 20, (SAMPLES, 10))
    words[:, 6:] = 0
    inner = keras.Sequential([keras.Input((10, 16)), layers.LSTM(16, return_sequences=True)])
    model = keras.Sequential([keras.Input((10,), dtype="int32"),
                              layers.Embedding(20, 16, mask_zero=True),
                              layers.LSTM(16, return_sequences=True), inner, layers.LSTM(16),
                              layers.Dense(5)])
    model.compile(keras.optimizers.SGD(0.1), sparse_loss())
    attach(model, packs=4)
    history = model.fit(words, data()[1], batch_size=BATCH, epochs=3, shuffle=False, verbose=0)
    return numbers_of(history)


def mixed_precision(attach):
    keras.mixed_precision.set_global_policy("mixed_float16")
    model = keras.Sequential([dense_model(), layers.Activation("linear", dtype="float32")])
    model.compile(keras.optimizers.Adam(1e-3), sparse_loss())
    attach(model)
    x, y = data()
    history = model.fit(x, y, batch_size=BATCH, epochs=3, shuffle=False, verbose=0)
    return numbers_of(history) + [float(model.optimizer.dynamic_scale.numpy())]


def frozen_layers_and_average(attach):
    model = dense_model()
    model.layers[0].trainable = False
    model.layers[2].trainable = False
    model.compile(keras.optimizers.Nadam(1e-3, use_ema=True, ema_overwrite_frequency=4,
                                         weight_decay=1e-2), sparse_loss())
    attach(model)
    x, y = data()
    history = model.fit(x, y, batch_size=BATCH, epochs=3, shuffle=False, verbose=0)
    return numbers_of(history) + [float(np.abs(v.numpy()).sum()) for v in model.variables]


def thawed(attach):
    """Fine-tuning: trains the last layers first, then all."""
    base = dense_model()
    model = keras.Sequential([base, layers.Activation("relu"), layers.Dense(5)])
    base.trainable = False
    model.compile(keras.optimizers.Adam(1e-2), sparse_loss())
    attach(model)
    x, y = data()
    first = model.fit(x, y, batch_size=BATCH, epochs=2, shuffle=False, verbose=0)
    base.trainable = True
    model.compile(keras.optimizers.Adam(1e-3), sparse_loss())
    second = model.fit(x, y, batch_size=BATCH, epochs=2, shuffle=False, verbose=0)
    return numbers_of(first) + numbers_of(second) + [
        float(np.abs(v.numpy()).sum()) for v in model.variables]


def accumulated_and_several_at_once(attach):
    model = dense_model()
    model.compile(keras.optimizers.Lion(1e-3, gradient_accumulation_steps=2), sparse_loss(),
                  steps_per_execution=2)
    attach(model)
    x, y = data()
    history = model.fit(x, y, batch_size=BATCH, epochs=3, shuffle=False, verbose=0)
    return numbers_of(history) + [float(model.train_on_batch(x[:BATCH], y[:BATCH]))]


def shares_of_samples(attach):
    model = dense_model()
    model.compile(keras.optimizers.Adam(1e-2, clipvalue=0.01), sparse_loss(), metrics=["accuracy"])
    attach(model, mode="dp")
    x, y = data()
    history = model.fit(x, y, batch_size=BATCH, epochs=3, shuffle=False, verbose=0)
    return numbers_of(history) + model.evaluate(x, y, batch_size=BATCH, verbose=0)[:1]


def resumed(attach):
    """Trains, saves, loads and resumes; as_keras() trains without a break, also with Harmony."""
    x, y = data()

    def train(model, epochs, first=0):
        attach_with_plan(model)
        history = model.fit(x, y, batch_size=BATCH, epochs=epochs, initial_epoch=first,
                            shuffle=False, verbose=0)
        return numbers_of(history)

    model = dense_model()
    model.add(layers.BatchNormalization())
    model.add(layers.Dense(5))
    model.compile(keras.optimizers.Adam(1e-2), sparse_loss())
    if attach is as_keras:
        return train(model, 4)
    first = train(model, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model.save(path)
        loaded = keras.models.load_model(path)
    return first + train(loaded, 4, first=2)


CASES = (fit_with_everything, class_weights_and_changing_rate, several_inputs_and_outputs,
         masks_and_recurrence, mixed_precision, frozen_layers_and_average, thawed,
         accumulated_and_several_at_once, shares_of_samples, resumed)


def main():
    results = {}
    for case in CASES:
        for name, attach in (("keras", as_keras), ("harmony", attach_with_plan)):
            keras.mixed_precision.set_global_policy("float32")
            keras.utils.set_random_seed(5)
            results.setdefault(case.__name__, {})[name] = case(attach)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
