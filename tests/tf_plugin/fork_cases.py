"""Programs that fork after TensorFlow has computed. Each returns what stock TensorFlow returns.

A child does not have TensorFlow's threads: small ops that need none work there, larger ones hang,
on stock too.
"""

import multiprocessing
import os
import pickle
import subprocess
import sys

import keras
import numpy as np
import tensorflow as tf

from tests.soak.figures import figures

ROUNDS = 20
SHAPE = (64, 64)


def in_child(function):
    """Runs `function` in a fork of this process and returns its result."""
    ends = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.write(ends[1], pickle.dumps(function()))
        finally:
            os._exit(0)
    os.close(ends[1])
    with os.fdopen(ends[0], "rb") as answer:
        text = answer.read()
    os.waitpid(process, 0)
    return pickle.loads(text)


def filled(value):
    return tf.fill(SHAPE, tf.constant(float(value)))


def sums(first):
    """Fills tensors again and again, and returns those that held something else."""
    wrong = 0
    for i in range(ROUNDS):
        tensors = [filled(first + i + k) for k in range(4)]
        wrong += sum(not np.all(t.numpy() == first + i + k) for k, t in enumerate(tensors))
    return wrong


def both_fill_tensors_at_once():
    sums(0)
    ends = os.pipe()
    process = os.fork()
    if process == 0:
        os.write(ends[1], pickle.dumps(sums(1000)))
        os._exit(0)
    ours = sums(2000)
    theirs = pickle.loads(os.read(ends[0], 4096))
    os.waitpid(process, 0)
    return ours, theirs


def a_child_keeps_what_its_parent_overwrites():
    variable = tf.Variable(filled(1))
    views = [filled(i) for i in range(8)]
    arrays = [view.numpy() for view in views]
    ready, done = os.pipe(), os.pipe()
    process = os.fork()
    if process == 0:
        os.read(ready[0], 1)
        answer = [float(array.sum()) for array in arrays] + [float(tf.reduce_sum(variable))]
        variable.assign_add(filled(5))
        os.write(done[1], pickle.dumps(answer + [float(tf.reduce_sum(variable))]))
        os._exit(0)
    variable.assign(filled(7))
    del views, arrays
    for i in range(ROUNDS):
        filled(100 + i)
    os.write(ready[1], b"x")
    theirs = pickle.loads(os.read(done[0], 4096))
    os.waitpid(process, 0)
    return theirs, float(tf.reduce_sum(variable))


def children_of_children():
    variable = tf.Variable(filled(3))

    def child():
        variable.assign_add(filled(1))
        grandchild = in_child(lambda: float(tf.reduce_sum(variable * 2.0)))
        return grandchild, float(tf.reduce_sum(variable))

    return in_child(child), float(tf.reduce_sum(variable))


def _square(i):
    return float(tf.reduce_sum(filled(i) * filled(i)))


def a_pool_of_forks():
    sums(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(_square, range(8))


class Squares(keras.utils.PyDataset):

    def __len__(self):
        return 6

    def __getitem__(self, index):
        # Uses only NumPy: Keras forks while TensorFlow computes and may hold locks.
        x = np.random.default_rng(index).normal(size=(16, 32)).astype("float32")
        return x * 2, x[:, :1]


def a_data_set_of_processes():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Dense(256, "relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse", jit_compile=False)
    data = Squares(workers=2, use_multiprocessing=True)
    history = model.fit(data, epochs=3, verbose=0, shuffle=False)
    return history.history["loss"], float(tf.reduce_sum(filled(2)))


def other_ways_to_start_a_process():
    sums(0)
    answers = [subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True,
                              check=True).stdout]
    with multiprocessing.get_context("forkserver").Pool(1) as pool:
        answers.append(pool.apply(pow, (2, 10)))
    return answers + [os.system("exit 3") >> 8, sums(50)]


def a_child_reads_what_is_swapped_out():
    variables = [tf.Variable(tf.random.stateless_normal((512, 512), [i, 1])) for i in range(24)]

    @tf.function
    def use(i):
        for k, variable in enumerate(variables):
            if k % 3 == i:
                variable.assign_add(tf.matmul(variable, variable) * 1e-3)

    for i in range(3):
        use(i)
    read = lambda: [float(v.numpy().sum()) for v in variables]
    return in_child(read), read()


CASES = [
    both_fill_tensors_at_once,
    a_child_keeps_what_its_parent_overwrites,
    children_of_children,
    a_pool_of_forks,
    a_data_set_of_processes,
    other_ways_to_start_a_process,
    a_child_reads_what_is_swapped_out,
]


def growth_by(forks):
    """Returns the growth of bytes and open files after `count` children, one after the other; and a
    sum."""
    variable = tf.Variable(filled(1))
    seen = []
    for children in (10, forks):
        for _ in range(children):
            in_child(lambda: float(tf.reduce_sum(variable)))
            for _ in range(4):
                variable.assign_add(filled(1) * filled(2))
        seen.append(figures())
    before, after = seen
    return (after["private"] - before["private"], after["descriptors"] - before["descriptors"],
            float(tf.reduce_sum(variable)))
