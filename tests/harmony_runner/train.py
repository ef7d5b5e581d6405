"""Trains a model by Harmony, and then as Keras does on the same portions. Prints what it saw.

usage: train.py JSON, with model, optimizer, devices, memory (bytes), mode, portion, steps, and
plan: null, or what Harmony is to do instead of planning itself
"""

import json
import sys

from thimble_gpu import harmony

OPTIONS = json.loads(sys.argv[1])
DEVICES = harmony.cpu_devices(OPTIONS["devices"])

import keras  # pylint: disable=wrong-import-position
import tensorflow as tf  # pylint: disable=wrong-import-position

from tests.harmony_runner import compared  # pylint: disable=wrong-import-position
from tests.harmony_runner import models  # pylint: disable=wrong-import-position
from tests.harmony_runner import plain  # pylint: disable=wrong-import-position

# Convolutions on CPUs have buffers for the threads that help, and who helps is chance.
tf.config.threading.set_intra_op_parallelism_threads(1)


def plan_or_portion():
    if OPTIONS["plan"] is None:
        return {"portion": OPTIONS["portion"]}
    forward, backward = ([harmony.Task(first, last, gpu, tuple(portions), saved)
                          for first, last, gpu, portions, saved in OPTIONS["plan"][kind]]
                         for kind in ("forward", "backward"))
    return {"plan": harmony.Plan(OPTIONS["mode"], OPTIONS["devices"], OPTIONS["plan"]["batch"],
                                 tuple(forward), tuple(backward))}


def main():
    keras.utils.set_random_seed(7)
    model = models.MODELS[OPTIONS["model"]]()
    before = [variable.numpy() for variable in model.variables]
    x, y = models.batch_of(OPTIONS["model"])
    model.compile(models.optimizer(OPTIONS["optimizer"], OPTIONS["model"]), models.loss())
    attached = harmony.attach(model, devices=DEVICES, memory=OPTIONS["memory"],
                              mode=OPTIONS["mode"], **plan_or_portion())
    seen = compared.Losses()
    model.fit(x, y, batch_size=len(x), epochs=OPTIONS["steps"], shuffle=False, verbose=0,
              callbacks=[seen])
    portions, traffic = attached.portions(), attached.traffic()
    attached.detach()
    for variable, value in zip(model.variables, before):
        variable.assign(value)
    expected = plain.losses(model, models.optimizer(OPTIONS["optimizer"], OPTIONS["model"]), x, y,
                            portions, OPTIONS["steps"])
    print(json.dumps({"losses": seen.seen, "expected": expected, "portions": portions,
                      "traffic": traffic,
                      "predicted": attached.predicted_peaks(),
                      "measured": attached.measured_peaks(), "reserved": attached.reserved_peaks(),
                      "explanation": attached.explain()}))


main()
