"""The symbols that the two libraries export and need: a plugin is a guest in another program's
process."""

import re
import subprocess
import unittest

LOADED_ALWAYS = "tf_plugin/libthimble_tf.so"
HOOKS = "tf_plugin/libthimble_tf_hooks.so"


def exported(library):
    symbols = subprocess.run(["nm", "--dynamic", "--defined-only", library], check=True,
                             capture_output=True, text=True).stdout
    return sorted(line.split()[-1] for line in symbols.splitlines())


def needed(library):
    entries = subprocess.run(["readelf", "--dynamic", "--wide", library], check=True,
                             capture_output=True, text=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", entries))


class Symbols(unittest.TestCase):

    def test_only_the_interface_is_shown(self):
        self.assertEqual(exported(LOADED_ALWAYS), ["thimble_tf_arena"])
        self.assertEqual(exported(HOOKS), ["thimble_tf_hooked_arena", "thimble_tf_install"])

    def test_the_library_that_is_always_loaded_needs_nothing(self):
        self.assertLessEqual(needed(LOADED_ALWAYS),
                             {"libc.so.6", "libdl.so.2", "libm.so.6", "libgcc_s.so.1",
                              "libstdc++.so.6"})

    def test_the_hooks_need_the_core_and_tensorflow(self):
        self.assertIn("libthimble.so", needed(HOOKS))
        self.assertIn("libtensorflow_framework.so.2", needed(HOOKS))
        self.assertFalse([name for name in needed(HOOKS) if "absl" in name or "cuda" in name])


if __name__ == "__main__":
    unittest.main()
