"""Trains with activations that are saved for backward, then recomputed. Prints JSON.

usage: saving_case.py MODEL
"""

import json
import sys

from thimble_gpu import harmony

DEVICES = harmony.cpu_devices(2)

import keras  # pylint: disable=wrong-import-position
from keras import layers  # pylint: disable=wrong-import-position

from tests.harmony_runner import models  # pylint: disable=wrong-import-position
from thimble_gpu.harmony.chain import Chain  # pylint: disable=wrong-import-position

SAVED = range(6)


def recurrent():
    """A model with a loop, whose gradient changes its forward."""
    return keras.Sequential([
        keras.Input((32,)), layers.Embedding(models.WORDS, 32), layers.Dense(32), layers.LSTM(
            32, return_sequences=True, unroll=False), *[layers.Dense(32) for _ in range(4)],
        layers.Dense(models.WORDS)])


def train(name, saved):
    keras.utils.set_random_seed(3)
    model = recurrent() if name == "recurrent" else models.MODELS[name]()
    x, y = models.batch_of("transformer" if name == "recurrent" else name)
    model.compile(models.optimizer("adam", name), models.loss())
    spans = [(0, 2), (3, 5), (6, len(Chain(model).stages) - 1)]
    forward = [harmony.Task(*span, number % 2, (8, 8)) for number, span in enumerate(spans)]
    backward = [harmony.Task(*span, number % 2, (8, 8)) for number, span in enumerate(spans[::-1])]
    plan = harmony.Plan("pp", 2, 16, tuple(forward[:-1]), tuple(backward)).with_saved(saved)
    attached = harmony.attach(model, devices=DEVICES, memory="256MiB", plan=plan)
    losses = model.fit(x[:16], y[:16], batch_size=16, epochs=4, shuffle=False,
                       verbose=0).history["loss"]
    explanation, predicted = attached.explain(), attached.predicted_peaks()
    measured = attached.measured_peaks()
    attached.detach()
    return {"losses": losses, "explanation": explanation,
            "ratios": [measured[device] / predicted[device] for device in predicted]}


print(json.dumps([train(sys.argv[1], saved) for saved in (SAVED, ())]))
