"""Time of a training step on the CPU device: stock TensorFlow, Thimble, and Thimble with an event
log in turn, in one run.

    bazel run -c opt //tests/tf_plugin:step_time -- [ROUNDS]

One JSON object per model: milliseconds of a step (median over rounds), by the clock and of
processor time, and ratios of sums of processor time, which other work on the machine does not
disturb as much: of Thimble to stock TensorFlow, and of Thimble with a log to Thimble without one.
"""

import json
import resource
import statistics
import sys
import tempfile
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


def step_seconds(name):
    """Seconds of one step by the clock, and of processor time."""
    keras.utils.set_random_seed(7)
    model = train.cnn() if name == "cnn" else train.transformer(width=128, length=64)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  jit_compile=False)
    model.make_train_function()
    batches = iter(tf.data.Dataset.from_tensors(batch(name)).repeat())
    for _ in range(WARM_UP):
        model.train_function(batches)
    start, start_processor = time.perf_counter(), processor_seconds()
    for _ in range(STEPS):
        model.train_function(batches)
    return ((time.perf_counter() - start) / STEPS,
            (processor_seconds() - start_processor) / STEPS)


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
        stock, thimble, logged = [], [], []
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(rounds):
                stock.append(measured(name, plugin=None))
                thimble.append(measured(name, THIMBLE_CONF="device:cpu"))
                logged.append(measured(name, THIMBLE_CONF=f"device:cpu,log:{folder}/log"))
        line = {"model": name}
        for who, seconds in (("stock", stock), ("thimble", thimble), ("logged", logged)):
            clock, processor = zip(*seconds)
            line[who + "_ms"] = round(1000 * statistics.median(clock), 2)
            line[who + "_processor_ms"] = round(1000 * statistics.median(processor), 2)
        line["ratio"] = round(processor_sum(thimble) / processor_sum(stock), 3)
        line["log_ratio"] = round(processor_sum(logged) / processor_sum(thimble), 3)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
