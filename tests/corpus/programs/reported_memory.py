"""Found by ./dev fuzz programs: what the CPU device says it has changed a sum's order."""
# Waits for: large

import hashlib
import multiprocessing
import os
import pickle
import tempfile
import threading

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

tf.config.experimental.enable_op_determinism()
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
keras.utils.set_random_seed(4)


def show(name, value):
    """A line that differs if one bit of the value does."""
    digest = hashlib.sha256()
    for leaf in tf.nest.flatten(value):
        array = np.asarray(leaf)
        digest.update(f"{array.dtype} {array.shape} ".encode() + array.tobytes())
    print(name, digest.hexdigest()[:16], flush=True)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)



@tf.function
def part_1(x):
    parts = [tf.sin(x)]
    for k in range(11):
        parts.append(tf.cos(parts[-1] * (0.5 + k)))
    return tf.reduce_sum(tf.add_n(parts[::-1]), axis=0)
show("part_1", part_1(tf.constant(numbers(2000, 3000, seed=1))))
@tf.function
def part_2(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = 0.0
        for k in range(11):
            total += tf.reduce_sum(tf.sin(x * (0.5 + k)) * tf.cos(x))
    return tf.reduce_sum(tape.gradient(total, x), axis=0)
show("part_2", part_2(tf.constant(numbers(2000, 3000, seed=1))))
