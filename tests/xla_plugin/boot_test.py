"""The boot module is inactive unless enabled; if anything is wrong, it writes one line and JAX
works as without it."""

import unittest

from tests.frameworks.installation import install_for_jax
from tests.xla_plugin import installation
from tests.xla_plugin.installation import thimble

# JAX must still find and use a GPU when Thimble does not serve it.
USES_GPU = """
    import jax
    import jax.numpy as jnp
    assert jax.devices()[0].platform == "gpu", jax.devices()
    jnp.ones(4).block_until_ready()
    print("front on:", front() is not None and arena().value is not None)
"""


class Boot(unittest.TestCase):

    def setUp(self):
        self.site = installation.Installation(self)

    def assert_refused(self, ended, *words, allocator="default"):
        """One line that has these words, and JAX on the GPU without Thimble."""
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(len(ended.said), 1, ended.stderr)
        for word in (f"not in use, JAX has its {allocator} allocator", *words):
            self.assertIn(word, ended.said[0])
        self.assertEqual(ended.stdout, "front on: False\n")

    def test_with_the_variable_unset_nothing_is_loaded_and_nothing_said(self):
        program = "print(sorted(set(sys.modules) - {'sitecustomize', 'site'}))"
        inside = self.site.python(program, environment={}, simulator=None)
        (self.site.folder / "thimble.pth").unlink()
        outside = self.site.python(program, environment={}, simulator=None)
        self.assertEqual(inside.stdout, outside.stdout)
        self.assertEqual(inside.stderr, "")
        for value in ("default", "thimbles", ""):
            ended = self.site.python("print('thimble_boot' in sys.modules)", simulator=None,
                                     environment={"XLA_PYTHON_CLIENT_ALLOCATOR": value})
            self.assertEqual(ended.stdout, "False\n")

    def test_with_the_variable_unset_jax_has_the_driver_itself(self):
        ended = self.site.python(USES_GPU, environment={})
        self.assertEqual((ended.returncode, ended.said), (0, []), ended.stderr)
        self.assertEqual(ended.stdout, "front on: False\n")

    def test_a_program_that_wants_no_gpu_hears_nothing(self):
        ended = self.site.python("import jax; print(jax.devices()[0].platform, front())",
                                 thimble(JAX_PLATFORMS="cpu"), simulator=None)
        self.assertEqual((ended.stdout, ended.said), ("cpu None\n", []), ended.stderr)

    def test_options_that_make_no_sense(self):
        for variables, words in (
            ({"THIMBLE_CONF": "limti:1GiB"}, ("'limti'", "limit")),
            ({"THIMBLE_CONF": "limit:much"}, ("'limit'", "'much'")),
            ({"THIMBLE_CONF": "limit:2GiB"}, ("limit:2147483648 is more than",)),
            ({"THIMBLE_CONF": "device:cpu"}, ("'device'", "leave it out")),
            ({"XLA_CLIENT_MEM_FRACTION": "1.5"}, ("XLA_CLIENT_MEM_FRACTION is 1.5",)),
        ):
            with self.subTest(variables):
                self.assert_refused(self.site.python(USES_GPU, thimble(**variables)), *words)

    def test_an_allocator_that_jax_is_told_of_elsewhere_counts(self):
        config = "import jax; jax.config.update('jax_pjrt_client_create_options', {!r})"
        for name, variables, first in (
            ("bfc", {"JAX_PJRT_CLIENT_CREATE_OPTIONS": "allocator:bfc"}, ""),
            ("platform", {}, config.format("allocator:platform")),
            ("bfc", {}, config.format({"allocator": "bfc", "preallocate": False})),
        ):
            with self.subTest(first or variables):
                ended = self.site.python(USES_GPU, thimble(**variables), first=first)
                self.assert_refused(ended, f"jax_pjrt_client_create_options says allocator:{name}",
                                    "leave it out", allocator=name)

    def test_other_options_of_the_client_are_honoured(self):
        told = "import jax; jax.config.update('jax_pjrt_client_create_options', {})"
        program = USES_GPU + "    print(stats().limit >> 20)\n"
        for options, limit in ({"allocator": "cuda_async"}, 1024), ({"memory_fraction": 0.25}, 256):
            with self.subTest(options):
                ended = self.site.python(program, first=told.format(options))
                self.assertEqual((ended.returncode, ended.said), (0, []), ended.stderr)
                self.assertEqual(ended.stdout, f"front on: True\n{limit}\n")

    def test_a_device_that_cannot(self):
        ended = self.site.python(USES_GPU, thimble(SIMGPU_CONF="pools:off"))
        self.assert_refused(ended, "GPU 0 has no memory pools")

    def test_a_driver_that_was_loaded_before(self):
        self.assert_refused(self.site.python(USES_GPU, first="ctypes.CDLL('libcuda.so.1')"),
                            "has loaded the CUDA driver before JAX")

    def test_an_unsupported_jaxlib(self):
        first = "import thimble_boot; thimble_boot.JAXLIB_VERSIONS = ('0.0.1',)"
        self.assert_refused(self.site.python(USES_GPU, first=first), "jaxlib is 0.",
                            "tested with 0.0.1")

    def test_a_front_that_does_not_load(self):
        library = self.site.folder / "thimble_gpu" / "lib" / "libthimble_xla.so"
        library.unlink()
        self.assert_refused(self.site.python(USES_GPU), "does not load", "install thimble-gpu again")
        library.write_text("not a library")
        self.assert_refused(self.site.python(USES_GPU), "does not load", "install thimble-gpu again")

    def test_a_machine_without_a_driver(self):
        """JAX says itself that it finds no GPU; Thimble's line says why it is not in use."""
        program = """
            import thimble_boot
            thimble_boot.candidates = lambda: iter(())
            import jax
            print(jax.devices("cpu")[0].platform, front())
        """
        ended = self.site.python(program, simulator=None)
        self.assertEqual(ended.stdout, "cpu None\n", ended.stderr)
        self.assertEqual(len(ended.said), 1, ended.stderr)
        self.assertIn("this machine has no CUDA driver", ended.said[0])

    def test_two_copies_get_one_line_and_the_first_is_used(self):
        other = self.site.folder.parent / "other"
        install_for_jax(other)
        ended = self.site.python(USES_GPU, path=(other,))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(len(ended.said), 1, ended.stderr)
        self.assertIn("installed more than once", ended.said[0])
        self.assertIn(str(other / "thimble_boot.py"), ended.said[0])
        self.assertEqual(ended.stdout, "front on: True\n")


if __name__ == "__main__":
    unittest.main()
