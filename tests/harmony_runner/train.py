"""Trains a model with Harmony, then as Keras does on the same microbatches. Prints JSON.

usage: train.py JSON, with model, optimizer, devices, memory (bytes), mode, microbatch, steps, and
plan: null, or the plan that Harmony is to use
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

# Convolutions on CPUs have a buffer for each helping thread, and the number of helpers varies.
tf.config.threading.set_intra_op_parallelism_threads(1)


def plan_or_microbatch():
    if OPTIONS["plan"] is None:
        return {"portion": OPTIONS["microbatch"]}
    forward, backward = ([harmony.Task(first, last, gpu, tuple(microbatches), saved)
                          for first, last, gpu, microbatches, saved in OPTIONS["plan"][kind]]
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
                              mode=OPTIONS["mode"], **plan_or_microbatch())
    seen = compared.Losses()
    model.fit(x, y, batch_size=len(x), epochs=OPTIONS["steps"], shuffle=False, verbose=0,
              callbacks=[seen])
    microbatches, traffic = attached.portions(), attached.traffic()
    attached.detach()
    for variable, value in zip(model.variables, before):
        variable.assign(value)
    expected = plain.losses(model, models.optimizer(OPTIONS["optimizer"], OPTIONS["model"]), x, y,
                            microbatches, OPTIONS["steps"])
    print(json.dumps({"losses": seen.seen, "expected": expected, "microbatches": microbatches,
                      "traffic": traffic,
                      "predicted": attached.predicted_peaks(),
                      "measured": attached.measured_peaks(), "reserved": attached.reserved_peaks(),
                      "explanation": attached.explain()}))


main()
