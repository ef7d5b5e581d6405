"""Every mistake gets one clear message, and TensorFlow either works or refuses before training."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import tensorflow as tf

from tests.tf_plugin import forked

OTHER_VERSION = os.path.realpath("tests/tf_plugin/libthimble_tf_other_version.so")
STAYS = "TensorFlow uses its own allocator."
CPU = {"THIMBLE_CONF": "device:cpu"}
GPU = {"TF_GPU_ALLOCATOR": "thimble"}


def compute():
    """One op, and whether Thimble is in the process."""
    total = float(tf.reduce_sum(tf.ones([10]) + 1))
    return total, forked.loaded("libthimble_tf_hooks.so") is not None


def refusal():
    try:
        return compute()
    except tf.errors.InvalidArgumentError as error:
        return error.message


def load_after_an_operation():
    compute()
    forked.load(forked.PLUGIN)
    return compute()[0]


def load_another(plugin):
    forked.load(plugin)
    return compute()[0]


class Refusals(unittest.TestCase):

    def refused(self, conf, *parts, **variables):
        result = forked.run(refusal, THIMBLE_CONF=conf, **variables)
        self.assertIsInstance(result.answer, str, result)
        for part in ("Thimble: THIMBLE_CONF: ",) + parts:
            self.assertIn(part, result.answer)

    def test_an_unknown_key_is_refused_with_the_list(self):
        self.refused("device:cpu,limti:1GiB", "'limti'", "limit", "retry_ms", "front")

    def test_a_malformed_value_is_named(self):
        self.refused("device:cpu,limit:lots", "option 'limit'", "'lots'")
        self.refused("device:cpu,limit:0", "option 'limit'", "'0'")
        self.refused("device:cpu,front:best", "'best'")

    def test_a_limit_larger_than_the_device_is_named(self):
        self.refused("device:cpu,memory:1GiB,limit:2GiB", "limit:2147483648", "1073741824")

    def test_contradictions_are_refused(self):
        self.refused("device:cpu", "contradict", **GPU)

    def test_another_version_of_tensorflow_is_left_alone(self):
        result = forked.run(compute, plugin=OTHER_VERSION, **CPU)
        self.assertEqual(result.answer, (20.0, False), result)
        said = result.lines_with("thimble: ")
        self.assertEqual(len(said), 1, result)
        self.assertIn(f"is for TensorFlow 1.2.3, but loaded is {tf.__version__}", said[0])
        self.assertIn(STAYS, said[0])

    def test_half_an_installation_is_left_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            result = forked.run(compute, plugin=shutil.copy(forked.PLUGIN, folder), **CPU)
        self.assertEqual(result.answer, (20.0, False), result)
        said = result.lines_with("libthimble_tf_hooks.so")
        self.assertEqual(len(said), 1, result)
        self.assertIn(STAYS, said[0])

    def test_loaded_after_the_first_operation(self):
        for variables in (CPU, GPU):
            result = forked.run(load_after_an_operation, plugin=None, **variables)
            self.assertEqual(result.answer, 20.0, result)
            self.assertEqual(len(result.lines_with("after TensorFlow's first operation")), 1, result)

    def test_of_two_copies_the_first_serves(self):
        with tempfile.TemporaryDirectory() as folder:
            for library in ("libthimble_tf.so", "libthimble_tf_hooks.so"):
                shutil.copy(pathlib.Path(forked.PLUGIN).with_name(library), folder)
            os.symlink(os.path.realpath("allocator/libthimble.so"),
                       os.path.join(folder, "libthimble.so"))
            for variables in (CPU, GPU):
                result = forked.run(load_another, os.path.join(folder, "libthimble_tf.so"),
                                    **variables)
                self.assertEqual(result.answer, 20.0, result)
                self.assertEqual(len(result.lines_with("installed twice")), 1, result)

    def test_nobody_asked_and_nothing_changes(self):
        for variables in ({}, {"THIMBLE_CONF": "limit:1GiB"},
                          {"TF_GPU_ALLOCATOR": "cuda_malloc_async"}):
            result = forked.run(compute, **variables)
            self.assertEqual(result.answer, (20.0, False), result)
            self.assertFalse(result.lines_with("himble"), result)


class Importing(unittest.TestCase):
    """As for users: TensorFlow itself loads the plugin while it is imported."""

    def test_is_enough(self):
        program = "import tensorflow as tf; print(float(tf.reduce_sum(tf.ones([10]) + 1)))"
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True,
            env={**os.environ, **CPU, "TF_CPP_MIN_LOG_LEVEL": "0",
                 "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": forked.PLUGIN})
        self.assertEqual(done.stdout, "20.0\n")
        self.assertEqual(done.stderr.count("Thimble serves the CPU device"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
