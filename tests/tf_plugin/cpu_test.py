"""Stock TensorFlow's CPU device on Thimble: the same numbers, a limit, true figures."""

import re
import unittest

import tensorflow as tf

from tests.tf_plugin import forked
from tests.tf_plugin import train

CPU = -1  # THIMBLE_TF_CPU


def figures():
    """Returns MiB in use with a tensor, with the result of a compiled function, and after dropping
    that result."""
    assert forked.arena_stats(CPU) is None

    @tf.function(jit_compile=True)
    def compiled(x):
        return tf.linalg.matmul(x, x) + 1

    kept = tf.ones([1024, 1024]) + 1
    with_kept = forked.arena_stats(CPU).in_use
    result = compiled(kept)
    with_result = forked.arena_stats(CPU)
    del result
    after = forked.arena_stats(CPU)
    return [size >> 20 for size in (with_kept, with_result.in_use - with_kept,
                                    after.in_use - with_kept, after.limit)]


def hold_too_much(count=20):
    kept = []
    try:
        for i in range(count):
            kept.append(tf.fill([2048, 1024], float(i)))
        return "fits"
    except tf.errors.ResourceExhaustedError as error:
        del kept
        return str(error), float(tf.reduce_sum(tf.ones([2048, 1024])))


def two_logical_devices():
    cpu = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu[0], [tf.config.LogicalDeviceConfiguration()] * 2)
    with tf.device("CPU:1"):
        return [device.name for device in cpu], (tf.ones([4]) + 1).device[-5:]


def memory_of_logical_devices():
    """Returns MiB in use on each device after allocating 4 MiB on CPU:1, and the error of CPU:1
    above its limit."""
    cpu = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu[0], [tf.config.LogicalDeviceConfiguration()] * 3)
    with tf.device("CPU:1"):
        kept = tf.ones([1024, 1024]) + 1
        try:
            tf.ones([16, 1024, 1024])
            said = "fits"
        except tf.errors.ResourceExhaustedError as error:
            said = str(error)
    with tf.device("CPU:2"):
        tf.ones([8, 1024, 1024])
    stats = [forked.arena_stats(CPU - i) for i in range(3)]
    return [each.in_use >> 20 for each in stats], kept.device[-5:], said


class CpuDevice(unittest.TestCase):

    def test_losses_are_those_of_stock_tensorflow_to_the_last_bit(self):
        stock = forked.run(train.losses, plugin=None)
        ours = forked.run(train.losses, THIMBLE_CONF="device:cpu,limit:512MiB")
        self.assertEqual(len(ours.lines_with("Thimble serves the CPU device")), 1, ours)
        self.assertEqual([len(steps) for steps in stock.answer.values()], [train.STEPS] * 4, stock)
        self.assertEqual(stock.answer, ours.answer)

    def test_figures_are_those_of_the_arena_also_for_compiled_functions(self):
        result = forked.run(figures, THIMBLE_CONF="device:cpu,limit:256MiB")
        # 4 MiB kept; 4 MiB for what XLA computed, until it is dropped.
        self.assertEqual(result.answer, [4, 4, 0, 256], result)

    def test_what_does_not_fit_is_explained_and_the_program_goes_on(self):
        result = forked.run(hold_too_much, THIMBLE_CONF="device:cpu,limit:64MiB,retry_ms:100")
        error, total = result.answer
        self.assertIn("by allocator CPU_thimble", error)
        self.assertEqual(total, 2048 * 1024)
        told = result.lines_with("CPU_thimble: out of memory (limit)")
        # TensorFlow logs its exception itself, too.
        self.assertEqual(len([line for line in told if "tf_allocator.cc" in line]), 1, result)
        for part in ("requested  8.00 MiB by Fill", "largest possible block", "64.00 MiB Fill",
                     "fits with  limit:75497472"):
            self.assertTrue(result.lines_with(part), f"{part}\n{result}")
        # The exception has the same text as the log.
        report = error[error.index("CPU_thimble: out of memory (limit)"):]
        report = report[:report.index("limit:75497472") + len("limit:75497472")]
        self.assertIn(report, result.log)
        self.assertIn("requested  8.00 MiB by Fill", report)

    def test_the_limit_that_the_report_names_fits(self):
        conf = "device:cpu,retry_ms:100,limit:"
        refused = forked.run(hold_too_much, 9, THIMBLE_CONF=conf + "64MiB")
        named = re.search(r"fits with  limit:(\d+)", refused.log)
        self.assertTrue(named, refused)
        self.assertEqual(forked.run(hold_too_much, 9, THIMBLE_CONF=conf + named[1]).answer, "fits")

    def test_tensorflows_own_bfc_can_cut_up_the_memory(self):
        result = forked.run(hold_too_much, THIMBLE_CONF="device:cpu,front:bfc,limit:64MiB")
        error, total = result.answer
        self.assertIn("by allocator CPU_thimble_bfc", error)
        self.assertEqual(total, 2048 * 1024)

    def test_logical_devices_are_honoured(self):
        result = forked.run(two_logical_devices, THIMBLE_CONF="device:cpu")
        self.assertEqual(result.answer, (["/physical_device:CPU:0"], "CPU:1"), result)

    def test_each_logical_device_has_memory_of_its_own(self):
        result = forked.run(memory_of_logical_devices,
                            THIMBLE_CONF="device:cpu,limit:48MiB,retry_ms:100")
        in_use, device, said = result.answer
        self.assertEqual((in_use, device), ([0, 4, 0], "CPU:1"), result)
        self.assertIn("by allocator CPU_1_thimble", said)
        self.assertEqual(len(result.lines_with("Thimble serves the CPU device")), 3, result)


if __name__ == "__main__":
    unittest.main()
