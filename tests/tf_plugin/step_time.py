"""Measures a training step on the CPU device: stock TensorFlow and Thimble in turn, in one run.

    bazel run -c opt //tests/tf_plugin:step_time -- [ROUNDS]

One JSON object per model: milliseconds of a step (median over rounds), by the clock and of
processor time, and the ratio of sums of processor time, which other work on the machine disturbs
less.
"""

import json
import resource
import statistics
import sys
import time

import keras
import numpy as np
import tensorflow as tf

from tests.tf_plugin import forked
from tests.tf_plugin import train

WARM_UP = 40  # until memory has found its places
STEPS = 40


def batch(name):
    rng = np.random.default_rng(3)
    if name == "cnn":
        return rng.random((128, 16, 16, 3), dtype=np.float32), rng.integers(0, 10, (128,))
    words = rng.integers(0, train.WORDS, (32, 64))
    return words, words


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def warm_step(name):
    """Trains one step of the model when it is called."""
    keras.utils.set_random_seed(7)
    model = train.cnn() if name == "cnn" else train.transformer(width=128, length=64)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  jit_compile=False)
    model.make_train_function()
    batches = iter(tf.data.Dataset.from_tensors(batch(name)).repeat())
    for _ in range(WARM_UP):
        model.train_function(batches)
    return lambda: model.train_function(batches)


def timed(step, steps):
    """Seconds of one step by the clock, and of processor time."""
    start, start_processor = time.perf_counter(), processor_seconds()
    for _ in range(steps):
        step()
    return ((time.perf_counter() - start) / steps,
            (processor_seconds() - start_processor) / steps)


def step_seconds(name):
    return timed(warm_step(name), STEPS)


def measured(name, **case):
    result = forked.run(step_seconds, name, **case)
    if not isinstance(result.answer, tuple):
        sys.exit(str(result))
    return result.answer


def processor_sum(seconds):
    return sum(processor for _, processor in seconds)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for name in ("cnn", "transformer"):
        stock, thimble = [], []
        for _ in range(rounds):
            stock.append(measured(name, plugin=None))
            thimble.append(measured(name, THIMBLE_CONF="device:cpu"))
        line = {"model": name}
        for who, seconds in (("stock", stock), ("thimble", thimble)):
            clock, processor = zip(*seconds)
            line[who + "_ms"] = round(1000 * statistics.median(clock), 2)
            line[who + "_processor_ms"] = round(1000 * statistics.median(processor), 2)
        line["ratio"] = round(processor_sum(thimble) / processor_sum(stock), 3)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
