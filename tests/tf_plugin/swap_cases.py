"""Cases in which something holds a tensor while memory is so short that idle blocks must leave.

Each case returns hashes of what it saw. Tensors are 4 MiB; press() needs four times LIMIT, so every
block that may leave has left when it returns.
"""

import functools
import hashlib
import os
import tempfile
import threading

import numpy as np
import tensorflow as tf

LIMIT = 64 << 20
SHAPE = (1024, 1024)


@tf.function
def press(x):
    kept = [x]
    for _ in range(64):
        kept.append(tf.sin(kept[-1] + 1))
    total = tf.zeros([])
    for tensor in reversed(kept):  # the first that were made are used last
        with tf.control_dependencies([total]):
            total += tf.reduce_max(tf.identity(tensor))
    return total


def pressed():
    return float(press(tf.fill(SHAPE, 0.5)))


def random(seed):
    return tf.random.stateless_normal(SHAPE, (seed, 1))


def hash_of(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def folded(tensors):
    """Uses the last tensors first; not by a sum, which TensorFlow would compute in one op."""
    return functools.reduce(lambda a, b: tf.sin(a) * 0.5 + b, reversed(tensors))


@tf.function
def twice(x):
    return x * 2 + 1


def numpy_of_results():
    result = twice(random(1))
    array = result.numpy()
    pressed()
    with tempfile.TemporaryFile() as file:
        written = os.write(file.fileno(), memoryview(result))  # the system reads it, not the program
    return hash_of(array), written, hash_of(twice(result).numpy())


def dlpack_of_results():
    result = twice(random(2))
    imported = tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(result))
    pressed()
    return hash_of(imported.numpy()), hash_of((imported + result).numpy())


def numpy_of_variables():
    v = tf.Variable(random(3))

    @tf.function
    def step(x):
        v.assign_add(tf.sin(x))

    seen = []
    for i in range(3):
        array, capsule = v.numpy(), tf.experimental.dlpack.to_dlpack(v.read_value())
        before = hash_of(array)
        step(random(i))
        pressed()
        seen += [before == hash_of(array), before,
                 hash_of(tf.experimental.dlpack.from_dlpack(capsule).numpy())]
    return seen, hash_of(v.numpy())


def values_given_to_variables():
    value = twice(random(4))
    v, w = tf.Variable(value), tf.Variable(tf.zeros(SHAPE))
    assign = tf.function(lambda x: w.assign(x))
    assign(value)
    step = tf.function(lambda: (v.assign_add(w * 0.5), w.assign_sub(v)))
    step()
    pressed()
    return hash_of(value.numpy()), hash_of(v.numpy()), hash_of(w.numpy())


def checkpoints():
    v = tf.Variable(random(5))
    step = tf.function(lambda: v.assign(tf.cos(v)))
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i in range(3):
            step()
            pressed()
            paths.append(tf.train.Checkpoint(v=v).write(os.path.join(folder, str(i))))
        other = tf.Variable(tf.zeros(SHAPE))
        seen = []
        for path in paths:
            tf.train.Checkpoint(v=other).read(path)
            pressed()
            seen.append(hash_of(other.numpy()))
    return seen, hash_of(v.numpy())


def tf_data():
    data = tf.data.Dataset.range(4).map(
        lambda i: tf.fill([512, 1024], tf.cast(i, tf.float32)), num_parallel_calls=2)
    data = data.map(tf.sin).batch(2).cache().map(lambda x: x * 2).prefetch(1).repeat(2)
    seen = []
    for batch in data:
        pressed()
        seen.append(hash_of(twice(batch).numpy()))
    return seen


def python_functions():
    kept = []

    def keep(array):
        kept.append(array)
        return array + 1

    @tf.function
    def call(x):
        first = tf.numpy_function(keep, [tf.sin(x)], tf.float32)
        first.set_shape(SHAPE)
        return press(first), first

    seen = []
    for i in range(3):
        total, result = call(random(i))
        seen += [float(total), hash_of(result.numpy())]
    return seen, [hash_of(array) for array in kept]


def loops_and_lists():
    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            kept = tf.TensorArray(tf.float32, size=24)
            state = x
            for i in tf.range(24):
                state = tf.sin(state * 1.1)
                kept = kept.write(i, tf.cos(state[:64]))
            loss = tf.reduce_sum(kept.stack()[::3]) + tf.reduce_max(state)
        return tape.gradient(loss, x)

    return [hash_of(gradient(random(i)).numpy()) for i in range(2)]


def eager_ops():
    weights = tf.Variable(random(6) / 32)
    for _ in range(3):
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(tf.matmul(random(7), weights))
            pressed()
            loss = tf.reduce_sum(tf.square(hidden))
        weights.assign_sub(1e-6 * tape.gradient(loss, weights))
    return float(loss), hash_of(weights.numpy())


def compiled():
    v = tf.Variable(random(8))

    @tf.function(jit_compile=True)
    def step(x):
        v.assign_add(tf.sin(x))
        return tf.cos(v)

    @tf.function
    def outer(x):
        return press(step(tf.tanh(x)))

    seen = []
    for i in range(3):
        result = step(random(i))
        pressed()
        seen += [hash_of(result.numpy()), float(outer(result))]
    return seen, hash_of(v.numpy())


def sparse_variables():
    v = tf.Variable(random(9))

    @tf.function
    def step(rows):
        v.scatter_sub(tf.IndexedSlices(tf.gather(v, rows) * 0.5, rows))
        return press(tf.sin(v))

    seen = [float(step(tf.constant([i, 3 * i + 1]))) for i in range(3)]
    pressed()
    return seen, hash_of(v.numpy())


def threads():
    """Runs two programs at once, with enough memory for one op of each."""
    results = [None, None]

    def work(index):
        v = tf.Variable(random(index))
        step = tf.function(lambda: v.assign(tf.sin(v) + 1))
        for _ in range(3):
            step()
            pressed()
        results[index] = hash_of(v.numpy())

    workers = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results


def errors_in_the_middle():
    v = tf.Variable(random(12))

    @tf.function
    def step(x, bound):
        kept = [tf.sin(x + i) for i in range(24)]
        with tf.control_dependencies([v.assign_add(kept[0])]):
            check = tf.debugging.Assert(tf.reduce_max(kept[1]) < bound, [bound])
        with tf.control_dependencies([check]):
            v.assign_add(folded(kept))
        return tf.reduce_max(v)

    seen = []
    for i in range(6):
        try:
            seen.append(float(step(random(i), 0.5 if i % 2 else 2.0)))
        except tf.errors.InvalidArgumentError:
            seen.append("refused")
        pressed()
    return seen, hash_of(v.numpy())


def reference_variables():
    """As TensorFlow 1 made them: ops hold the variable's own buffer."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        v = v1.Variable(random(13), use_resource=False)
        kept = [v + 1.0]
        for _ in range(40):
            kept.append(tf.sin(kept[-1]))
        total = folded(kept)
        with tf.control_dependencies([total]):
            step = v1.assign_sub(v, 0.01 * total)
        session.run(v1.global_variables_initializer())
        seen = [hash_of(session.run(step)) for _ in range(3)]
        return seen, hash_of(session.run(v))


CASES = (numpy_of_results, dlpack_of_results, numpy_of_variables, values_given_to_variables,
         checkpoints, tf_data, python_functions, loops_and_lists, eager_ops, compiled,
         sparse_variables, threads, errors_in_the_middle, reference_variables)
