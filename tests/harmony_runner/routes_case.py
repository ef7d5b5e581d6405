"""Trains with all boundaries copied between devices, and with none. Prints JSON.

Normally this depends on which device is ready first. usage: routes_case.py MODEL
"""

import json
import sys

from thimble_gpu import harmony

DEVICES = harmony.cpu_devices(3)

import keras  # pylint: disable=wrong-import-position

from tests.harmony_runner import models  # pylint: disable=wrong-import-position
from thimble_gpu.harmony import routes  # pylint: disable=wrong-import-position
from thimble_gpu.harmony import step as steps  # pylint: disable=wrong-import-position
from thimble_gpu.harmony.chain import Chain  # pylint: disable=wrong-import-position


class Always(routes.Handover):
    """The receiver has always asked. These devices have no memory limit."""

    def send(self, job, results):
        self._asked.set()
        return super().send(job, results)


class Never(routes.Handover):

    def send(self, job, results):
        self._asked.clear()
        return super().send(job, results)


def plan_for(model):
    """Three packs on three devices; each computes backward on another device than forward."""
    stages = len(Chain(model).stages)
    spans = [(0, 2), (3, 5), (6, stages - 1)]
    forward = [harmony.Task(*span, gpu, (8, 8)) for gpu, span in enumerate(spans)]
    backward = [harmony.Task(*span, gpu, (8, 8)) for gpu, span in zip((2, 0, 1), spans[::-1])]
    return harmony.Plan("pp", 3, 16, tuple(forward[:-1]), tuple(backward))


def train(name, kind):
    steps.Handover = kind
    keras.utils.set_random_seed(3)
    model = models.MODELS[name]()
    x, y = (each[:16] for each in models.batch_of(name))
    model.compile(models.optimizer("adam", name), models.loss())
    attached = harmony.attach(model, devices=DEVICES, memory="1GiB", plan=plan_for(model))
    seen = model.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0).history
    predicted = model.predict(x, batch_size=16, verbose=0)
    seen = {"losses": seen["loss"], "predicted": float(predicted.sum()), **attached.traffic()}
    attached.detach()
    return seen


print(json.dumps([train(sys.argv[1], kind) for kind in (Always, Never)]))
