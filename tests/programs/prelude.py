"""What stands at the top of a program: imports, settings, and the helpers that it mentions."""

LIMIT = 1 << 30  # bytes: of every mode that has no limit of its own
BEYOND = (LIMIT + (LIMIT >> 1)) // 4  # floats: more than any mode has

_IMPORTS = '''\
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
tf.config.threading.set_intra_op_parallelism_threads({threads})
tf.config.threading.set_inter_op_parallelism_threads({threads})
keras.utils.set_random_seed({seed})


def show(name, value):
    """A line that differs if one bit of the value does."""
    digest = hashlib.sha256()
    for leaf in tf.nest.flatten(value):
        array = np.asarray(leaf)
        digest.update(f"{{array.dtype}} {{array.shape}} ".encode() + array.tobytes())
    print(name, digest.hexdigest()[:16], flush=True)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
'''

_HELPERS = {
    "out_of_memory": f'''
BEYOND = {BEYOND}  # floats: more than the limit


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
''',
    "forked": '''
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
''',
    "together": '''
def together(*functions):
    """Runs them in threads of their own, all at once."""
    results = [None] * len(functions)

    def run(index):
        try:
            results[index] = functions[index]()
        except BaseException as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
''',
    "digest_of": '''
def digest_of(value):
    return hashlib.sha256(np.asarray(value).tobytes()).hexdigest()[:16]
''',
    "Batches": '''
class Batches(keras.utils.PyDataset):
    """Batches made by Python; each has a tensor of TensorFlow's behind it."""

    def __init__(self, shape, classes, **more):
        super().__init__(**more)
        self.shape, self.classes = shape, classes

    def __len__(self):
        return 4

    def __getitem__(self, index):
        inputs = tf.sin(tf.constant(numbers(*self.shape, seed=index))).numpy()
        labels = np.arange(self.shape[0]) * (index + 1) % self.classes
        return inputs, labels
''',
    "Interrupt": '''
class Interrupt(keras.callbacks.Callback):
    """Stops training with an exception."""

    def on_train_batch_end(self, batch, logs=None):
        if batch == 1:
            raise KeyError("in the middle of an epoch")
''',
}


def prelude(seed, threads, text):
    used = [source for name, source in _HELPERS.items() if name + "(" in text]
    return _IMPORTS.format(seed=seed, threads=threads) + "\n" + "\n".join(used) + "\n\n"
