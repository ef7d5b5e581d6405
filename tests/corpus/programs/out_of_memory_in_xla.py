"""Found by ./dev fuzz programs: a failed launch freed what a variable still held."""
# Waits for: oom_xla

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


BEYOND = 402653184  # floats: more than the limit


def out_of_memory(function):
    """Asks for more than the limit. Stock TensorFlow has none, so it is not asked."""
    if "limit:" in os.environ.get("THIMBLE_CONF", ""):
        try:
            function()
        except tf.errors.ResourceExhaustedError:
            print("out of memory", flush=True)
        else:
            print("fits", flush=True)
    else:
        print("out of memory", flush=True)


tensor_1 = tf.constant(numbers(64, 64, seed=1)) * 1.0
variable_4 = tf.Variable(numbers(64, 64, seed=4))
@tf.function(jit_compile=True)
def part_9(x, length):
    variable_4.assign_add(tf.sin(x) * 0.1)
    large = tf.sort(tf.broadcast_to(x[0, 0], [length]) + tf.range(length, dtype=tf.float32))
    return large[0] + tf.reduce_sum(variable_4)
variable_4.assign(tensor_1 * 0.5)
out_of_memory(lambda: part_9(tensor_1, BEYOND))
part_9_kept = [tf.fill(tensor_1.shape, float(k)) for k in range(8)]
show("part_9 unharmed", [variable_4, part_9_kept])
for _ in range(3):
    show("part_9", [part_9(tensor_1, 10), variable_4, tf.sin(tensor_1)])
