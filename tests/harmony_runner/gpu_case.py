"""Trains a model on four GPUs with less memory than it needs. Prints the peaks.

usage: gpu_case.py MODEL MODE MEMORY [TOPOLOGY]
"""

import json
import sys

import tensorflow as tf

from tests.harmony_runner import models
from thimble_gpu import harmony


def main():
    name, mode, memory, *topology = sys.argv[1:]
    with tf.device("CPU:0"):  # weights stay on the host
        model = models.MODELS[name]()
        model.compile(models.optimizer("adam"), models.loss(), metrics=["accuracy"])
    x, y = models.batch_of(name)
    attached = harmony.attach(model, memory=int(memory), mode=mode,
                              topology=topology[0] if topology else None)
    model.fit(x, y, batch_size=len(x), epochs=3, verbose=0)
    peaks = attached.measured_peaks()
    model.evaluate(x, y, batch_size=len(x), verbose=0)
    model.predict(x, batch_size=len(x), verbose=0)
    print(json.dumps({"predicted": attached.predicted_peaks(), "measured": peaks,
                      "largest": attached.largest_peaks(),
                      "reserved": attached.reserved_peaks(), "explanation": attached.explain(),
                      "traffic": attached.traffic()}))


main()
