"""One round of everything that a process on Thimble goes through, and what it showed."""

import ctypes
import hashlib
import os
import tempfile
import time

import keras
import numpy as np
import tensorflow as tf

from tests.soak.figures import figures
from tests.tf_plugin import forked

CPU = -1  # THIMBLE_TF_CPU
SHAPE = (1024, 1024)  # 4 MiB
PRESSED = 24  # tensors of that shape that press() has at once
SWAP_LIMIT = 64 << 20  # bytes: less than they need


def digest(values):
    told = hashlib.sha256()
    for value in tf.nest.flatten(values):
        told.update(np.asarray(value).tobytes())
    return told.hexdigest()[:16]


@tf.function
def press(x):
    """Uses the first tensors that it made last."""
    kept = [x]
    for _ in range(PRESSED):
        kept.append(tf.nn.relu(kept[-1] * 1.01 + 1.0))
    total = tf.zeros([])
    for tensor in reversed(kept):
        with tf.control_dependencies([total]):
            total += tf.reduce_max(tf.identity(tensor))
    return total


class Arena:
    """The arena behind the CPU device of this process, by the functions of thimble.h."""

    def __init__(self):
        plugin = ctypes.CDLL(forked.PLUGIN)
        plugin.thimble_tf_arena.restype = ctypes.c_void_p
        self.handle = ctypes.c_void_p(plugin.thimble_tf_arena(CPU))
        self.core = ctypes.CDLL(forked.loaded("libthimble.so"))

    def check(self):
        assert self.core.thimble_check(self.handle) == 0  # stops the process if one is broken

    def trim(self):
        released = ctypes.c_uint64()
        assert self.core.thimble_trim(self.handle, ctypes.c_uint64(0), ctypes.byref(released)) == 0


class Rounds:
    """A model that is trained on and on. `limit` is the arena's, None in stock TensorFlow."""

    def __init__(self, limit, features):
        tf.config.experimental.enable_op_determinism()
        tf.config.threading.set_intra_op_parallelism_threads(1)  # or a child could not compute
        tf.config.threading.set_inter_op_parallelism_threads(1)
        keras.utils.set_random_seed(7)
        self.limit, self.features = limit, features
        self.counts = dict.fromkeys(("forks", "out of memory", "MiB swapped", "plans"), 0)
        self.model = keras.Sequential([
            keras.Input((24, 24, 3)), keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.BatchNormalization(), keras.layers.Dropout(0.1),
            keras.layers.Conv2D(16, 3, strides=2), keras.layers.Flatten(), keras.layers.Dense(10)])
        self.model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                           jit_compile=False)
        rng = np.random.default_rng(3)
        self.inputs = rng.random((64, 24, 24, 3), dtype=np.float32)
        self.labels = rng.integers(0, 10, (64,))
        self.variable = tf.Variable(tf.zeros(SHAPE))
        self.compiled = tf.function(self.add_sorted, jit_compile=True)
        self.large = tf.function(lambda length: tf.reduce_sum(tf.fill([length], 1.0)))
        self.arena = None

    # --- Parts ------------------------------------------------------------------------------------

    def train(self):
        history = self.model.fit(self.inputs, self.labels, batch_size=16, verbose=0)
        return history.history["loss"]

    def evaluate(self):
        return self.model.evaluate(self.inputs, self.labels, batch_size=16, verbose=0)

    def save(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "it.weights.h5")
            self.model.save_weights(path)
            self.model.train_on_batch(self.inputs[:8], self.labels[:8])
            self.model.load_weights(path)
        return self.model.get_weights()

    def press(self):
        """More than the limit at once: with `swap`, what is idle leaves and comes back."""
        return press(self.variable * 0.5), self.variable

    def add_sorted(self, length):
        self.variable.assign_add(tf.ones(SHAPE))
        large = tf.sort(self.variable[0, 0] + tf.range(length, dtype=tf.float32))
        return large[0] + tf.reduce_sum(self.variable)

    def run_out(self):
        """More than there is: by one op, by many, in a graph and, if asked for, inside XLA."""
        if self.limit is not None:
            beyond = self.limit // 4 * 3 // 2  # floats
            hold = lambda: [tf.fill([beyond // 4], float(i)) for i in range(8)]
            ways = [lambda: tf.fill([beyond], 1.0), hold, lambda: self.large(tf.constant(beyond))]
            if "oom_xla" in self.features:
                ways.append(lambda: self.compiled(beyond))
            for way in ways:
                try:
                    way()
                    raise AssertionError("more fitted than there is")
                except tf.errors.ResourceExhaustedError:
                    self.counts["out of memory"] += 1
        return self.variable, self.model.get_weights()

    def fork(self):
        """A child changes what it has, and the parent what it has."""
        if "forks" not in self.features:
            return None
        child = forked.run(self.changed, plugin=None)
        self.counts["forks"] += 1
        return child.answer, self.changed(), self.variable

    def changed(self):
        kept = [tf.fill(SHAPE, float(os.getpid() % 2 + i)) for i in range(4)]
        self.variable.assign_add(tf.ones(SHAPE))
        return digest([self.variable, [tf.reduce_max(each) - tf.reduce_min(each) for each in kept]])

    def trim(self):
        if self.arena:
            self.arena.trim()

    # --- Rounds -----------------------------------------------------------------------------------

    def round(self):
        """Digests of what each part gave, and what the process holds after it."""
        shown = [digest(part()) if part is not self.trim else part() for part in (
            self.train, self.evaluate, self.save, self.press, self.run_out, self.trim, self.train,
            self.evaluate)] + [digest([each for each in [self.fork()] if each])]
        if self.limit is not None:
            self.arena = self.arena or Arena()
            self.arena.check()
            stats = forked.arena_stats(CPU)
            self.counts.update({"MiB swapped": stats.swap_out_bytes >> 20, "plans": stats.plans})
        return shown, figures()


def soak(limit, features, seconds, count):
    """As many rounds as fit in the time, or `count`: their digests, figures and counts."""
    rounds = Rounds(limit, features)
    end = time.monotonic() + seconds
    told = []
    while len(told) < count and time.monotonic() < end:
        told.append(rounds.round())
    return [shown for shown, _ in told], [held for _, held in told], rounds.counts
