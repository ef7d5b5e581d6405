"""Found by ./dev fuzz programs: a kernel of oneDNN aborted when memory ran out inside it."""
# Waits for: onednn

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
tf.config.threading.set_intra_op_parallelism_threads(2)
tf.config.threading.set_inter_op_parallelism_threads(2)
keras.utils.set_random_seed(13)


def show(name, value):
    """A line that differs if one bit of the value does."""
    digest = hashlib.sha256()
    for leaf in tf.nest.flatten(value):
        array = np.asarray(leaf)
        digest.update(f"{array.dtype} {array.shape} ".encode() + array.tobytes())
    print(name, digest.hexdigest()[:16], flush=True)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)



tensor_1 = tf.constant(numbers(256, 256, seed=1)) * 1.0
variable_2 = tf.Variable(numbers(256, 256, seed=2))
tensor_3 = tf.constant(numbers(256, 256, seed=3)) * 1.0
variable_4 = tf.Variable(tf.constant(numbers(256, 256, seed=4)) * 0.5)
part_5 = tf.experimental.dlpack.to_dlpack(tensor_1 * 2.0)
part_5_other = tf.experimental.dlpack.from_dlpack(part_5)
del part_5
show("part_5", part_5_other + tensor_1)
def function_6(tensor_7):
    tensor_8 = tf.sqrt(tf.abs(tensor_7) + 1.0)
    tensor_9 = tf.squeeze(tf.nn.max_pool2d(tensor_8[None, :, :, None], 3, 1, 'SAME'), [0, 3])
    tensor_10 = tensor_9 + tf.reduce_sum(tf.unique(tf.reshape(tf.round(tensor_9), [-1]))[0]) * 0.001
    return tensor_9, tensor_10, tensor_8, tensor_10
tensor_11 = tensor_3
for _ in range(12):
    tensor_11 = tf.tanh(function_6(tensor_11)[-1])
    show("function_6", [function_6(tensor_3), variable_2, variable_4])
