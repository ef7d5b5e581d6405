"""What ops of stock TensorFlow tell the core about their blocks, call by call.

The device and the hooks are real; the core's three functions only record their calls (recorder.cc).
Every tensor has a different size, which identifies it in the record.
"""

import collections
import ctypes
import os
import unittest

import tensorflow as tf

from tests.tf_plugin import forked

HOOKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "librecording_hooks.so")
CONF = "device:cpu,limit:1GiB,swap:auto"
KIB = 1024
TURN = 1  # THIMBLE_OP_TAKES_TURN

# `sizes` in KiB, of the blocks in the order of the call; `addresses` likewise.
Call = collections.namedtuple("Call", "what op flags sizes addresses touched")


def _blocks(words):
    pairs = [word.split(":") for word in words]
    return [int(size) // KIB for _, size in pairs], [int(address) for address, _ in pairs]


def _parsed(line):
    words = line.split()
    first, _, second = " ".join(words[3:]).partition("/")
    sizes, addresses = _blocks(first.split())
    return Call(words[0], int(words[1]), int(words[2]), sizes, addresses, _blocks(second.split())[0])


def take():
    """All calls since the last time."""
    library = ctypes.CDLL(HOOKS)
    library.recorder_take.restype = ctypes.c_size_t
    text = ctypes.create_string_buffer(library.recorder_take(None) + 4096)
    bytes_ = library.recorder_take(text)
    return [_parsed(line) for line in text.raw[:bytes_].decode().splitlines()]


def key_of(name):
    core = ctypes.CDLL(forked.loaded("libthimble.so"))
    core.thimble_key_of.restype = ctypes.c_uint64
    return core.thimble_key_of(name.encode(), ctypes.c_size_t(len(name)))


def tensor(kib, value=1.0):
    """Makes a tensor on the device; tensors from NumPy are not."""
    return tf.fill([kib, 256], value)


def calls_of(function, *arguments):
    """Calls of a function's second run: the first one traces it."""
    function(*arguments)
    take()
    function(*arguments)
    return take()


def exposed(calls):
    return {size for call in calls if call.what == "expose" for size in call.sizes}


def pinned(calls):
    return [call.sizes for call in calls if call.what == "pin" and call.sizes]


def touched(calls):
    return {size for call in calls if call.what == "unpin" for size in call.touched}


# --- Cases: each runs in a process of its own and returns calls ----------------------------------


def matmul():
    x, w = tensor(128), tf.fill([256, 512], 1.0)
    return calls_of(tf.function(lambda x, w: tf.reduce_sum(tf.matmul(tf.sin(x), w))), x, w)


def variable_in_function():
    v = tf.Variable(tensor(96))

    @tf.function
    def step():
        v.assign_add(tf.ones([96, 256]))
        return tf.reduce_sum(v)

    return calls_of(step)


def list_of_tensors():
    x = tensor(100)

    @tf.function
    def stack(x):
        array = tf.TensorArray(tf.float32, size=3)
        for i, function in enumerate((tf.sin, tf.cos, tf.tan)):
            array = array.write(i, function(x))
        return tf.reduce_sum(array.stack())

    return calls_of(stack, x)


def python_function():
    x = tensor(100)

    @tf.function
    def call(x):
        return tf.reduce_sum(tf.numpy_function(lambda a: a[:70], [x * 2], tf.float32))

    return calls_of(call, x), key_of("PyFunc")


def eager():
    x = tensor(80)
    kept = tf.sin(tf.reshape(x, [-1]))
    calls = take()
    del kept
    return calls


def eager_variable():
    """Returns the addresses of the variable, of the tensor that Python assigned, and of the one
    that Python read."""
    value = tensor(90, 3.0)
    v = tf.Variable(value)
    take()
    read = v.read_value()
    calls = take()
    own = {address for call in calls if call.what == "pin" for address in call.addresses}
    arrays = value.numpy(), read.numpy()
    v.assign_add(value)
    return own, [array.ctypes.data for array in arrays], [float(array.sum()) for array in arrays]


def dataset():
    data = tf.data.Dataset.range(100).map(lambda i: tf.fill([20, 256], tf.cast(i, tf.float32)))
    options = tf.data.Options()  # no thread that is ahead, and still has pins when all are taken
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    data = iter(data.batch(5).with_options(options))
    return calls_of(tf.function(lambda: tf.reduce_sum(tf.sin(next(data)))))


def loop():
    x = tensor(100)

    @tf.function
    def repeat(x):
        for _ in tf.range(4):
            x = tf.sin(x)
        return tf.reduce_sum(x)

    return calls_of(repeat, x)


def optional():
    x = tensor(100)

    @tf.function
    def wrapped(x):
        return tf.reduce_sum(tf.experimental.Optional.from_value(x * 2).get_value() + 1)

    return calls_of(wrapped, x)


def kernel_error():
    x = tensor(100)

    @tf.function
    def gather(x, i):
        return tf.reduce_sum(tf.gather(x * 2, i))

    gather(x, 1)
    take()
    try:
        gather(x, 1000)
        return "no error"
    except tf.errors.InvalidArgumentError:
        return take()


def refused():
    x = tensor(100)
    double = tf.function(lambda x: tf.reduce_sum(tf.sin(x, name="twice")))
    before = float(double(x))
    library = ctypes.CDLL(HOOKS)
    library.recorder_refuse(ctypes.c_uint64(key_of("twice")))
    take()
    try:
        double(x)
        error = "none"
    except tf.errors.ResourceExhaustedError as e:
        error = str(e)
    calls = take()
    library.recorder_refuse(ctypes.c_uint64(0))
    return error, calls, float(double(x)) == before


def compiled(inside):
    """A compiled function, called by Python or inside of another function."""
    v = tf.Variable(tensor(96))
    x = tensor(100)
    function = tf.function(lambda x: tf.reduce_sum(x) + tf.reduce_sum(v), jit_compile=True)
    return calls_of(tf.function(lambda x: function(tf.sin(x)) + 1) if inside else function, x)


def without_swap():
    x = tensor(100)
    return calls_of(tf.function(lambda x: tf.reduce_sum(x * 2)), x), float(tf.reduce_sum(x))


def load_recording(plugin):
    ctypes.CDLL(plugin, mode=ctypes.RTLD_LOCAL).thimble_tf_install()


class Announcements(unittest.TestCase):

    def run_case(self, case, *arguments, conf=CONF):
        forked.load, stock = load_recording, forked.load
        try:
            result = forked.run(case, *arguments, plugin=HOOKS, THIMBLE_CONF=conf)
        finally:
            forked.load = stock
        self.assertNotIsInstance(result.answer, (str, type(None)), result)
        return result.answer

    def assert_balanced(self, calls):
        """Every pin is undone, with the same blocks and the same turn."""
        open_ = collections.Counter()
        for call in calls:
            if call.what != "expose":
                open_[tuple(call.addresses), call.flags] += 1 if call.what == "pin" else -1
                self.assertGreaterEqual(open_[tuple(call.addresses), call.flags], 0, calls)
        self.assertEqual(sum(open_.values()), 0, calls)

    def test_an_op_pins_its_inputs_and_names_its_result(self):
        calls = self.run_case(matmul)
        self.assert_balanced(calls)
        # Sin, MatMul, Sum.
        self.assertEqual(pinned(calls), [[128], [128, 512], [256]])
        self.assertTrue({128, 256} <= touched(calls), calls)
        # Python holds the function's arguments.
        self.assertEqual(exposed(calls), {128, 512})
        self.assertEqual({call.flags for call in calls if call.what == "pin" and call.sizes}, {TURN})

    def test_variables_are_found_behind_their_handles(self):
        calls = self.run_case(variable_in_function)
        self.assert_balanced(calls)
        self.assertIn([96, 96], pinned(calls))  # what is added, and the variable
        self.assertIn(96, touched(calls))
        self.assertNotIn(96, exposed(calls))

    def test_only_ops_that_copy_out_of_a_list_use_what_is_in_it(self):
        calls = self.run_case(list_of_tensors)
        self.assert_balanced(calls)
        # The largest is made of whole chunks of 64 KiB.
        self.assertEqual(sorted(pinned(calls)), [[100], [100], [100], [100, 100, 100], [320]])

    def test_python_functions_see_what_stays(self):
        calls, key = self.run_case(python_function)
        self.assert_balanced(calls)
        self.assertEqual(exposed(calls), {100})
        before, call = next((before, call) for before, call in zip(calls, calls[1:])
                            if call.op == key)
        self.assertEqual((before.what, before.sizes), ("expose", [100]))
        self.assertEqual(call.flags, 0)

    def test_what_python_holds_stays(self):
        calls = self.run_case(eager)
        stay = {address for call in calls if call.what == "expose" for address in call.addresses}
        used = {address for call in calls for address in call.addresses}
        self.assertEqual(len(stay), 2)
        self.assertEqual(stay, used)

    def test_variables_share_no_block_with_python(self):
        own, given, totals = self.run_case(eager_variable)
        self.assertEqual(len(own), 1)
        self.assertEqual(len(own | set(given)), 3)
        self.assertEqual(totals, [3.0 * 90 * 256] * 2)

    def test_what_tf_data_gives_stays(self):
        calls = self.run_case(dataset)
        self.assert_balanced(calls)
        self.assertEqual(exposed(calls), {100})

    def test_each_turn_of_a_loop_announces_its_own_ops(self):
        calls = self.run_case(loop)
        self.assert_balanced(calls)
        self.assertEqual(pinned(calls), [[100]] * 5)

    def test_what_goes_into_something_opaque_stays(self):
        calls = self.run_case(optional)
        self.assert_balanced(calls)
        self.assertEqual(exposed(calls), {100})

    def test_an_op_that_fails_lets_its_blocks_go(self):
        calls = self.run_case(kernel_error)
        self.assert_balanced(calls)
        self.assertIn([100], pinned(calls))

    def test_an_op_whose_blocks_do_not_fit_is_not_run(self):
        error, calls, recovered = self.run_case(refused)
        self.assertIn("tensors of twice by allocator CPU_thimble", error)
        self.assert_balanced(calls)
        self.assertEqual(pinned(calls), [])
        self.assertTrue(recovered)

    def test_compiled_functions_keep_arguments_and_variables(self):
        for inside in (False, True):
            with self.subTest(inside=inside):
                calls = self.run_case(compiled, inside)
                self.assert_balanced(calls)
                self.assertEqual(exposed(calls), {96, 100})

    def test_without_swap_nothing_is_announced(self):
        calls, total = self.run_case(without_swap, conf="device:cpu,limit:1GiB")
        self.assertEqual(calls, [])
        self.assertEqual(total, 100 * 256)


if __name__ == "__main__":
    unittest.main()
