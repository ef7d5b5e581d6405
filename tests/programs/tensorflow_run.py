"""Runs programs on TensorFlow's CPU device. For workers only, because it imports TensorFlow."""

import os

import keras  # pylint: disable=unused-import; imported once, for all programs
import tensorflow as tf

from tests.programs import processes
from tests.tf_plugin import forked

CPU = -1  # THIMBLE_TF_CPU


def is_out_of_memory(error):
    # An op inside a Python function has an error of another class around it.
    return isinstance(error, tf.errors.ResourceExhaustedError) or "OOM when" in str(error)


def run(text, conf):
    """Runs the program, on Thimble if `conf` is not None; `more` is the most bytes it had."""

    def child(path):
        for name in forked.OWN_VARIABLES:
            os.environ.pop(name, None)
        if conf is None:
            return processes.executed(path, is_out_of_memory), None
        os.environ["THIMBLE_CONF"] = conf
        forked.load(forked.PLUGIN)
        end = processes.executed(path, is_out_of_memory)
        stats = forked.arena_stats(CPU)
        return end, stats.peak_in_use if stats else 0

    return processes.run(text, child)
