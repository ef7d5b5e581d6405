"""Stock TensorFlow's GPUs on Thimble. gpu_test.py runs this on two simulated GPUs of 4 GiB."""

import unittest

import keras
import numpy as np
import tensorflow as tf

from tests.tf_plugin import fork_cases
from tests.tf_plugin import forked
from tests.tf_plugin import oom_cases

GIB = 1 << 30
MIB = 1 << 20
THIMBLE = {"TF_GPU_ALLOCATOR": "thimble"}


def gpus():
    return tf.config.list_physical_devices("GPU")


def allow_growth():
    for gpu in gpus():
        tf.config.experimental.set_memory_growth(gpu, True)


def refused_in_a_fork():
    """Returns the error that a child gets when it requests memory of the GPU."""
    kept = hold()

    def child():
        try:
            return float(hold(mib=1).shape[0])
        except tf.errors.OpError as error:
            return str(error)

    told = fork_cases.in_child(child)
    return told, float(hold(mib=1).shape[0] + kept.shape[0])


def hold(device="GPU:0", mib=8):
    with tf.device(device):
        return tf.ones([mib, 256, 1024])


def reserved_and_limit(growth, device=0):
    if growth:
        allow_growth()
    kept = hold()
    stats = forked.arena_stats(device)
    del kept
    return stats.reserved, stats.limit


def session(options, experimental=()):
    """Bytes reserved and limit behind GPU:0 of a session with these GPU options."""
    config = tf.compat.v1.ConfigProto()
    for name, value in options.items():
        setattr(config.gpu_options, name, value)
    for name in experimental:
        setattr(config.gpu_options.experimental, name, True)
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as running:
        running.run(tf.reduce_sum(tf.random.normal([64, 64]) @ tf.ones([64, 64])))
        stats = forked.arena_stats(0)
        return stats and (stats.reserved, stats.limit)


def logical_devices():
    tf.config.set_logical_device_configuration(
        gpus()[0], [tf.config.LogicalDeviceConfiguration(memory_limit=limit) for limit in (512, 256)])
    kept = [hold(f"GPU:{device}") for device in range(2)]
    return [(forked.arena_stats(device).in_use >> 20, forked.arena_stats(device).limit >> 20)
            for device in range(len(kept))]


def visible_device():
    tf.config.set_visible_devices(gpus()[1], "GPU")
    kept = hold()
    return kept.device[-5:]


def figures():
    """Returns TensorFlow's MiB in use and their peak, before and after a reset."""
    allow_growth()
    kept = hold(mib=8)
    hold(mib=16)
    before = tf.config.experimental.get_memory_info("GPU:0")
    tf.config.experimental.reset_memory_stats("GPU:0")
    after = tf.config.experimental.get_memory_info("GPU:0")
    assert after["current"] == forked.arena_stats(0).in_use
    del kept
    return [info[name] >> 20 for info in (before, after) for name in ("current", "peak")]


def train(jit):
    """Bytes in use and reserved after each of four equal rounds."""
    allow_growth()
    model = keras.Sequential([
        keras.Input((16, 16, 3)), keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.Flatten(), keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  jit_compile=jit)
    inputs = np.zeros((64, 16, 16, 3), np.float32)
    labels = np.zeros((64,), np.int64)
    rounds = []
    for _ in range(4):
        model.fit(inputs, labels, batch_size=16, verbose=0)
        stats = forked.arena_stats(0)
        rounds.append((stats.live_blocks, stats.reserved))
    return rounds, forked.arena_stats(0).peak_in_use


def compiled():
    """MiB in use that a compiled function adds: its result, and at its peak also its temporaries."""
    allow_growth()
    x = tf.ones([1024, 1024])

    @tf.function(jit_compile=True)
    def cluster(x):
        return tf.sort(tf.linalg.matmul(x, x) + 1)

    before = forked.arena_stats(0)
    result = cluster(x)
    after = forked.arena_stats(0)
    del result
    return after.in_use - before.in_use >> 20, after.peak_in_use - before.in_use >> 20


def hold_too_much():
    allow_growth()
    kept = []
    try:
        for _ in range(100):
            kept.append(hold(mib=64))
    except tf.errors.ResourceExhaustedError as error:
        del kept
        hold(mib=64)
        return str(error)
    return "fits"


def refused():
    try:
        hold()
    except tf.errors.InternalError as error:
        return str(error)
    return "served"


def mirrored():
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256)])
        model.compile("sgd", "mse", jit_compile=False)
    model.fit(np.zeros((64, 64)), np.zeros((64, 256)), batch_size=16, verbose=0)
    return [forked.arena_stats(device).allocations > 0 for device in range(2)]


def swapped(swap, jit=False):
    """Returns the bytes that left GPU:0 while a net trained in little memory, or that memory ran
    out."""
    allow_growth()
    model = keras.Sequential([keras.Input((64, 64, 3))] + [
        keras.layers.Conv2D(64, 3, padding="same", activation="relu") for _ in range(12)] + [
            keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  jit_compile=jit)
    try:
        model.fit(np.zeros((128, 64, 64, 3), np.float32), np.zeros((128,), np.int64), batch_size=32,
                  verbose=0)
    except tf.errors.ResourceExhaustedError:
        return "out of memory"
    before = forked.arena_stats(0).swap_in_bytes
    weights = [variable.numpy() for variable in model.variables]
    stats = forked.arena_stats(0)
    assert len(weights) == len(model.variables)
    assert swap == (stats.swap_out_bytes > 0)
    return stats.swap_out_bytes, before, stats.peak_reserved


def many_variables():
    """Python assigns and reads variables that do not fit on GPU:0 together."""
    allow_growth()
    variables = [tf.Variable(np.full((8, 256, 1024), i, np.float32)) for i in range(24)]

    @tf.function
    def double():
        for variable in variables:
            variable.assign_add(variable)

    double()
    shapes = {variable.numpy().shape for variable in variables}
    stats = forked.arena_stats(0)
    return len(shapes), stats.swap_out_bytes > 0, stats.swapped > 0


class Gpu(unittest.TestCase):

    def answer(self, function, *arguments, **variables):
        return self.served(function, *arguments, **variables).answer

    def served(self, function, *arguments, **variables):
        """The result of a case in which Thimble serves GPU:0."""
        result = forked.run(function, *arguments, **{**THIMBLE, **variables})
        self.assertIsNotNone(result.answer, result)
        self.assertNotIn("Traceback", str(result.answer), result)
        self.assertEqual(len(result.lines_with("Thimble serves GPU:0 ")), 1, result)
        return result


class Options(Gpu):
    """Memory settings of the program and the user have the same effect as in stock TensorFlow."""

    def test_all_memory_is_taken_at_once_unless_growth_is_allowed(self):
        reserved, limit = self.answer(reserved_and_limit, False)
        self.assertEqual(reserved, limit)
        self.assertGreater(limit, 1 * GIB)
        reserved, limit = self.answer(reserved_and_limit, True)
        self.assertLess(reserved, 64 * MIB)
        self.assertGreater(limit, 1 * GIB)

    def test_the_variables_overrule_the_program(self):
        reserved, _ = self.answer(reserved_and_limit, False, TF_FORCE_GPU_ALLOW_GROWTH="true")
        self.assertLess(reserved, 64 * MIB)
        self.assertEqual(self.answer(reserved_and_limit, True,
                                     THIMBLE_CONF="preallocate:on,limit:256MiB"),
                         (256 * MIB, 256 * MIB))

    def test_a_fraction_of_the_memory(self):
        reserved, limit = self.answer(session, {"per_process_gpu_memory_fraction": 0.25})
        self.assertEqual(reserved, limit)
        self.assertLess(abs(limit - 1 * GIB), 4 * MIB)

    def test_a_fraction_above_one_is_left_to_tensorflow(self):
        result = forked.run(session, {"per_process_gpu_memory_fraction": 1.5}, **THIMBLE)
        self.assertEqual(len(result.lines_with("Thimble does not serve GPU:0: unified memory")), 1,
                         result)

    def test_a_list_of_visible_devices(self):
        for case in ((session, {"visible_device_list": "1", "allow_growth": True}),
                     (visible_device,)):
            result = self.served(*case)
            self.assertTrue(result.lines_with("Thimble serves GPU:0 (GPU_0_thimble): device:1,"),
                            result)

    def test_timestamps(self):
        self.assertTrue(self.answer(session, {"allow_growth": True}, ["timestamped_allocator"]))

    def test_logical_devices_have_an_arena_each(self):
        self.assertEqual(self.answer(logical_devices),
                         [(8, 512), (8, 256)])

    def test_a_limit_above_the_device_is_named_and_tensorflow_s_counts(self):
        result = self.served(reserved_and_limit, True, THIMBLE_CONF="limit:100GiB")
        self.assertLess(result.answer[1], 4 * GIB)
        said = result.lines_with(f"limit:100GiB is above the {result.answer[1]} bytes that "
                                 "TensorFlow allows for GPU:0")
        self.assertEqual(len(said), 1, result)

    def test_a_mistake_refuses_the_device(self):
        for conf, part in (("limti:1GiB", "unknown option 'limti'"), ("limit:lots", "'lots'"),
                           ("device:1", "TensorFlow chooses the GPUs")):
            result = forked.run(refused, THIMBLE_CONF=conf, **THIMBLE)
            self.assertIn("Failed to get memory allocator", result.answer, result)
            said = result.lines_with("Thimble: THIMBLE_CONF: ")
            self.assertEqual(len(said), 1, result)
            self.assertIn(part, said[0])


class Work(Gpu):

    def test_figures_are_true(self):
        self.assertEqual(self.answer(figures), [8, 24, 8, 8])

    def test_training_reaches_a_steady_state(self):
        for jit in (False, True):
            rounds, peak = self.answer(train, jit)
            self.assertEqual(rounds[1:], rounds[1:2] * 3)
            self.assertGreater(peak, 0)

    def test_what_xla_compiles_draws_from_the_arena(self):
        result, peak = self.answer(compiled)
        self.assertEqual(result, 4)
        self.assertGreaterEqual(peak, 8)

    def test_what_does_not_fit_is_explained_and_the_program_goes_on(self):
        result = self.served(hold_too_much, THIMBLE_CONF="retry_ms:100,limit:1GiB")
        for part in ("GPU_0_thimble: out of memory (limit)", "requested  64.00 MiB by Fill",
                     "largest possible block", "960.00 MiB Fill", "fits with  limit:"):
            self.assertIn(part, result.answer)
            self.assertTrue(result.lines_with(part), f"{part}\n{result}")

    def test_two_gpus_reach_each_other(self):
        result = self.served(mirrored)
        self.assertEqual(result.answer, [True, True], result)
        for device, peer in ((0, 1), (1, 0)):
            said = result.lines_with(f"Thimble serves GPU:{device} ")
            self.assertEqual(len(said), 1, result)
            self.assertIn(f"peers:{peer}", said[0])


    def test_a_fork_is_refused_in_words_and_its_parent_unharmed(self):
        told, parent = self.answer(refused_in_a_fork)
        self.assertIn("multiprocessing.set_start_method('spawn')", told)
        self.assertEqual(parent, 9)

    def test_a_compiled_function_that_fails_frees_nothing_of_its_variables(self):
        for conf in ("limit:96MiB,retry_ms:0", "limit:96MiB,retry_ms:0,swap:auto"):
            result = self.served(oom_cases.compiled, 5, 6000, THIMBLE_CONF=conf)
            self.assertIsInstance(result.answer, dict, result)
            self.assertEqual(result.answer["refused"], 5, result)
            self.assertIn("fits with  limit:", result.answer["message"])
            self.assertEqual(result.lines_with("freed twice"), [], result)


class Swap(Gpu):
    """swap:auto: idle tensors leave a GPU that is too small, over streams, without a wrong access."""

    def test_trains_in_less_memory_than_it_needs(self):
        _, _, peak = self.answer(swapped, False)
        conf = f"limit:{peak * 6 // 10},retry_ms:100"
        self.assertEqual(self.answer(swapped, False, THIMBLE_CONF=conf), "out of memory")
        out, back, peak = self.answer(swapped, True, THIMBLE_CONF=conf + ",swap:auto")
        self.assertGreater(out, 0)
        self.assertGreater(back, 0)
        self.assertLessEqual(peak, int(conf.split(",")[0].split(":")[1]))

    def test_two_gpus(self):
        result = self.served(mirrored, THIMBLE_CONF="swap:auto")
        self.assertEqual(result.answer, [True, True], result)

    def test_variables_need_not_fit_together(self):
        self.assertEqual(self.answer(many_variables, THIMBLE_CONF="swap:auto,limit:128MiB"),
                         (1, True, True))

    def test_compiled_functions(self):
        rounds, _ = self.answer(train, True, THIMBLE_CONF="swap:auto")
        self.assertEqual(rounds[1:], rounds[1:2] * 3)

    def test_a_compiled_function_that_does_not_fit_says_so(self):
        # The op reports its end while it still holds the locks of its variables.
        conf = "swap:auto,limit:96MiB,retry_ms:100"
        self.assertEqual(self.answer(swapped, True, True, THIMBLE_CONF=conf), "out of memory")


class Bfc(Gpu):
    """front:bfc: TensorFlow's own BFC on Thimble's memory."""

    def test_trains_and_grows(self):
        rounds, _ = self.answer(train, False, THIMBLE_CONF="front:bfc")
        self.assertEqual(rounds[1:], rounds[1:2] * 3)

    def test_takes_all_at_once_unless_growth_is_allowed(self):
        result = self.served(reserved_and_limit, False, THIMBLE_CONF="front:bfc,limit:512MiB")
        self.assertEqual(result.answer, (512 * MIB, 512 * MIB), result)
        self.assertTrue(result.lines_with("GPU_0_thimble_bfc"))
        reserved, _ = self.answer(reserved_and_limit, True, THIMBLE_CONF="front:bfc")
        self.assertLess(reserved, 64 * MIB)


if __name__ == "__main__":
    unittest.main()
