"""Stock JAX and stock TensorFlow in unified memory: the way in which people run today what does not
fit. It works on the simulated GPU, and the clock shows its price."""

import os
import re
import subprocess
import sys
import textwrap
import unittest

RUN = "tests/simgpu/run"
FITS, FITS_NOT = "1GiB", "96MiB"
UNIFIED = {"TF_FORCE_UNIFIED_MEMORY": "1", "XLA_PYTHON_CLIENT_MEM_FRACTION": "8.0"}

# 24 matrices of 4 MiB: 96 MiB of weights, and as many for their next values.
JAX = """
    import jax
    weights = [jax.numpy.ones((1024, 1024)) for _ in range(24)]
    @jax.jit
    def step(weights, x):
        for weight in weights:
            x = jax.numpy.tanh(x @ weight)
        return x, [weight * 0.9 for weight in weights]
    x = jax.numpy.ones((64, 1024))
    for _ in range(4):
        y, weights = step(weights, x)
    y.block_until_ready()
"""
TENSORFLOW = """
    import sys
    import tensorflow as tf
    from tensorflow.python.eager import context
    config = tf.compat.v1.ConfigProto()
    config.gpu_options.per_process_gpu_memory_fraction = float(sys.argv[1])
    context.context()._config = config  # TensorFlow 2 has no public place for it
    with tf.device("GPU:0"):
        weights = [tf.Variable(tf.ones((1024, 1024))) for _ in range(48)]
        @tf.function
        def step(x):
            for weight in weights:
                x = tf.tanh(x @ weight)
            for weight in weights:
                weight.assign(weight * 0.9)
            return x
        for _ in range(3):
            y = step(tf.ones((64, 1024)))
        y.numpy()
"""
MANAGED = re.compile(r"simgpu: 0 managed: (\d+) faults, ([\d.]+) MiB in .*?, ([\d.]+) MiB out, "
                     r"([\d.]+) MiB here, peak ([\d.]+) MiB")
COMPUTE = re.compile(r"simgpu: 0 simulated a100: compute ([\d.]+) s")


def run(memory, program, *arguments, **variables):
    """Ends with what the program said, and the summary."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XLA", "TF"))}
    return subprocess.run(
        [RUN, "--memory", memory, "--clock", "a100", "--", "python", "-c",
         textwrap.dedent(program), *arguments], check=False, capture_output=True, text=True,
        env={**kept, "SIMGPU_PYTHON": sys.executable, "SIMGPU_CONF": "summary:on", **variables})


class Unified(unittest.TestCase):

    def seconds(self, ended):
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return float(COMPUTE.search(ended.stderr)[1])

    def moved(self, ended):
        """Faults, and MiB in, out, here at the end, and here at most."""
        return [float(number) for number in MANAGED.search(ended.stderr).groups()]

    def test_jax_needs_it_and_pays_for_it(self):
        self.assertIn("RESOURCE_EXHAUSTED", run(FITS_NOT, JAX).stderr)
        fits, fits_not = (run(memory, JAX, **UNIFIED) for memory in (FITS, FITS_NOT))
        self.assertGreater(self.seconds(fits_not), 5 * self.seconds(fits))
        faults, came, left, _, most = self.moved(fits)
        self.assertEqual((came, left), (0, 0), "every page is new once, and stays")
        self.assertEqual(faults, most / 2)
        self.assertGreaterEqual(most, 2 * 96)
        self.assertLess(most, 3 * 96, "not much more than the arrays are")
        faults, came, left, _, most = self.moved(fits_not)
        self.assertGreater(came, 2 * 96, "more than once in three steps")
        self.assertEqual(most, 96)

    def test_tensorflow_runs_with_a_fraction_above_one(self):
        fits, fits_not = (run(memory, TENSORFLOW, "4.0") for memory in (FITS, "160MiB"))
        self.assertGreater(self.seconds(fits_not), 5 * self.seconds(fits))
        self.assertEqual(self.moved(fits)[1:3], [0, 0])
        self.assertGreater(self.moved(fits_not)[1], 192)


if __name__ == "__main__":
    unittest.main()
