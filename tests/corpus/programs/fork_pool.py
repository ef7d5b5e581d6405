"""Found by ./dev fuzz programs: processes of a fork pool shared their parent's memory."""
# Waits for: forks

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


def digest_of(value):
    return hashlib.sha256(np.asarray(value).tobytes()).hexdigest()[:16]


def part_9(index):
    return digest_of(tf.sin(tf.constant(numbers(200, 300, seed=index))) + 1.0)
variable_4 = tf.Variable(numbers(64, 64, seed=4))
with multiprocessing.get_context("fork").Pool(2) as part_9_pool:
    show("part_9", part_9_pool.map(part_9, range(6)))
