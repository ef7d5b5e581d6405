"""A child of a fork changes a variable: its parent must not see that."""
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


def forked(function):
    """Starts the function in a fork of this process; call the result to get what it returned."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            answer = function()
        except tf.errors.ResourceExhaustedError:
            answer = MemoryError()
        except BaseException as error:
            answer = repr(error)
        with open(writer, "wb") as file:
            pickle.dump(answer, file)
        os._exit(0)
    os.close(writer)

    def result():
        with open(reader, "rb") as file:
            told = file.read()
        os.waitpid(process, 0)
        answer = pickle.loads(told) if told else "the child crashed"
        if isinstance(answer, MemoryError):
            raise tf.errors.ResourceExhaustedError(None, None, "out of memory in a child")
        return answer

    return result


def digest_of(value):
    return hashlib.sha256(np.asarray(value).tobytes()).hexdigest()[:16]


tensor_1 = tf.constant(numbers(300, 500, seed=1)) * 1.0
variable_2 = tf.Variable(numbers(300, 500, seed=2))
def part_3():
    for k in range(4):
        variable_2.assign_add(tensor_1 * float(k + 1))
    return digest_of(variable_2)
variable_2.assign(tensor_1 * 0.5)
show("part_3", [forked(part_3)(), variable_2, tensor_1])
