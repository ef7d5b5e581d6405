"""Stock JAX on Thimble on the simulated GPU: unmodified programs, JAX's own variables, true figures.

The simulator ends with an error if anybody calls the driver in a way that CUDA forbids.
"""

import pathlib
import tempfile
import unittest

from tests.xla_plugin import installation
from tests.xla_plugin.installation import thimble

TRAIN = """
    import jax, jax.numpy as jnp, numpy as np

    def loss(weights, x):
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return (x * x).mean()

    @jax.jit
    def step(weights, x):
        return jax.tree.map(lambda w, g: w - g, weights, jax.grad(loss)(weights, x))

    weights = [jnp.ones((512, 512)) for _ in range(4)]
    x = np.ones((256, 512), np.float32)
    for _ in range(5):
        weights = jax.block_until_ready(step(weights, x))
    device = jax.devices()[0]
"""


class Jax(unittest.TestCase):

    def setUp(self):
        self.site = installation.Installation(self)

    def run_well(self, program, *arguments, **options):
        ended = self.site.python(program, *arguments, **options)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended

    def test_a_training_step_is_served_by_the_arena_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "calls"
            ended = self.run_well(TRAIN + """
    told = device.memory_stats()
    true = stats()
    assert told["bytes_in_use"] <= true.in_use <= told["bytes_in_use"] + 256 * true.live_blocks
    assert told["peak_bytes_in_use"] <= true.peak_in_use, (told, true.peak_in_use)
    assert told["bytes_limit"] == true.limit == 1 << 30, told
    assert true.peak_reserved <= true.peak_in_use + (4 << 20), "it grows by what is asked for"
    print(sorted(told))
            """, simulator=("--memory", "1GiB", "--log", str(log)))
            calls = log.read_text()
        self.assertEqual(ended.said, [])
        self.assertIn("bytes_in_use", ended.stdout)
        self.assertIn("cuMemCreate", calls)
        for call in ("cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuMemAlloc "):
            self.assertNotIn(" " + call, calls, "the driver's own pool was used")

    def test_two_gpus_at_once(self):
        ended = self.run_well("""
    import jax, jax.numpy as jnp, numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    assert len(jax.devices()) == 2
    mesh = Mesh(np.array(jax.devices()), ("data",))
    x = jax.device_put(np.ones((512, 1024), np.float32),
                       NamedSharding(mesh, PartitionSpec("data")))
    step = jax.jit(lambda x: x - jnp.tanh(x).mean())
    for _ in range(4):
        x = jax.block_until_ready(step(x))
    there = jax.device_put(x, jax.devices()[1])
    there.block_until_ready()
    options = ctypes.CDLL("libthimble.so", mode=os.RTLD_NOLOAD).thimble_options
    options.restype = ctypes.c_char_p
    for device in range(2):
        assert stats(device).live_blocks > 0
        assert b"peers:%d" % (1 - device) in options(arena(device)), "XLA asks for peer access"
    assert stats(1).in_use > stats(0).in_use
        """, simulator=("--gpus", "2", "--memory", "1GiB"))
        self.assertEqual(ended.said, [])

    def test_out_of_memory_is_explained_and_survived(self):
        ended = self.run_well("""
    import jax, jax.numpy as jnp
    held = [jnp.ones((50 << 18,)).block_until_ready() for _ in range(2)]
    for _ in range(2):
        try:
            jnp.ones((1000 << 18,)).block_until_ready()
            print("fits")
        except jax.errors.JaxRuntimeError as error:
            print(str(error).split(":")[0])
            notes = [note for note in error.__notes__ if note.startswith("thimble: ")]
            assert len(notes) == 1 and "requested  1000.00 MiB" in notes[0], error.__notes__
    jnp.ones((800 << 18,)).block_until_ready()
    other = jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: of something else", 8)
    assert not hasattr(other, "__notes__"), "a report is for one exception"
        """)
        self.assertEqual(ended.stdout, "RESOURCE_EXHAUSTED\nRESOURCE_EXHAUSTED\n")
        self.assertIn(len(ended.said), (1, 2), ended.stderr)
        for word in ("GPU 0: out of memory (true)", "requested  1000.00 MiB",
                     "in use     100.00 MiB", "limit of 1.00 GiB", "needs      78.00 MiB more",
                     "holders    2 x 50.00 MiB"):
            self.assertIn(word, ended.stderr)

    def test_the_report_is_in_the_traceback(self):
        ended = self.site.python("""
    import jax, jax.numpy as jnp
    jnp.ones((2000 << 18,)).block_until_ready()
        """)
        self.assertEqual(ended.returncode, 1)
        _, _, traceback = ended.stderr.partition("Traceback (most recent call last)")
        self.assertRegex(traceback, r"JaxRuntimeError: RESOURCE_EXHAUSTED: .*\n(.*\n)*"
                         r"thimble: GPU 0: out of memory \(true\).*\n"
                         r"  requested  1\.95 GiB\n(  .*\n)+")

    def test_where_exceptions_have_no_notes_the_report_is_in_their_text(self):
        """As before Python 3.11: what add_note() is there for is missing."""
        ended = self.run_well("""
    import jax, jax.numpy as jnp

    def missing(self):
        raise AttributeError("add_note")

    jax.errors.JaxRuntimeError.add_note = property(missing)
    try:
        jnp.ones((2000 << 18,)).block_until_ready()
    except jax.errors.JaxRuntimeError as error:
        first, *rest = str(error).splitlines()
        assert first.startswith("RESOURCE_EXHAUSTED: "), first
        assert any(line.startswith("thimble: GPU 0: out of memory (true)") for line in rest), rest
        print("explained")
        """)
        self.assertEqual(ended.stdout, "explained\n")

    def test_a_fraction_is_the_limit_for_arena_and_jax(self):
        for name in ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"):
            with self.subTest(name):
                ended = self.run_well("""
    import jax, jax.numpy as jnp
    jnp.ones(4).block_until_ready()
    assert stats().limit == 256 << 20
    assert jax.devices()[0].memory_stats()["bytes_limit"] == 256 << 20
    assert stats().reserved <= 4 << 20, "nothing is taken ahead"
    try:
        jnp.ones((300 << 18,)).block_until_ready()
    except jax.errors.JaxRuntimeError as error:
        print(str(error).split(":")[0])
                """, thimble(**{name: "0.25"}))
                self.assertEqual(ended.stdout, "RESOURCE_EXHAUSTED\n")
                self.assertIn("limit of 256.00 MiB", ended.stderr)

    def test_preallocation_takes_the_fraction_at_once(self):
        program = """
    import jax, jax.numpy as jnp
    jnp.ones(4).block_until_ready()
    print(stats().reserved >> 20, stats().limit >> 20)
        """
        for variables, mebibytes in (
            ({"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}, "768 768"),
            ({"XLA_PYTHON_CLIENT_PREALLOCATE": "true", "XLA_CLIENT_MEM_FRACTION": "0.5"}, "512 512"),
            ({"THIMBLE_CONF": "preallocate:on,limit:64MiB"}, "64 64"),
            ({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, "2 1024"),
        ):
            with self.subTest(variables):
                ended = self.run_well(program, thimble(**variables))
                self.assertEqual((ended.stdout, ended.said), (mebibytes + "\n", []))

    def test_an_arena_that_cannot_be_made_leaves_the_gpu_to_the_driver(self):
        ended = self.run_well("""
    import jax, jax.numpy as jnp
    assert jnp.ones((1 << 20,)).block_until_ready().devices().pop().platform == "gpu"
    print(arena().value)
        """, simulator=("--memory", "1GiB", "--fault", "cuMemAddressReserve@1+"))
        self.assertEqual(ended.stdout, "None\n")
        self.assertEqual(len(ended.said), 1, ended.stderr)
        self.assertIn("GPU 0 is left to the driver's own pool", ended.said[0])


if __name__ == "__main__":
    unittest.main()
