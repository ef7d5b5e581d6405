"""With the variables unset, an installed wheel changes nothing."""

import re
import unittest

from tests.wheel import installation

MODULES = "import sys; print(sorted(sys.modules))"
TIMES = 20
WORD = r"(?<![/\w.-])[Tt]himble"  # what a message says, not a folder of that name

# What TensorFlow logs and loads when it is imported.
TENSORFLOW = """
    import sys
    import tensorflow as tf
    assert tf.reduce_sum(tf.ones([4])) == 4
    with open("/proc/self/maps") as maps:
        names = {line.split("/")[-1].strip() for line in maps}
    print(sorted(name for name in names if "thimble" in name))
    print(sorted(name for name in sys.modules if "thimble" in name))
"""


def microseconds(environment):
    """Python's own count of what it imports when it starts."""
    told = environment.run("python", "-X", "importtime", "-c", "pass").stderr
    return sum(int(own) for own in re.findall(r"^import time: +(\d+) \|", told, re.MULTILINE))


class Inert(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.plain = installation.Environment(cls.addClassCleanup)
        cls.installed = installation.Environment(cls.addClassCleanup).install()

    def test_the_interpreter_starts_as_before(self):
        plain = self.plain.run("python", "-c", MODULES)
        installed = self.installed.run("python", "-c", MODULES)
        self.assertEqual((installed.stdout, installed.stderr), (plain.stdout, plain.stderr))
        self.assertNotIn("thimble", installed.stdout)

    def test_starting_takes_no_longer(self):
        """By Python's own count, the wheel's additions take less than a millisecond."""
        plain, installed = [], []
        for _ in range(TIMES):  # in turn, so that whatever else the machine does meets both
            plain.append(microseconds(self.plain))
            installed.append(microseconds(self.installed))
        self.assertLess(min(installed), min(plain) + 1000, f"{plain}\n{installed}")

    def test_tensorflow_has_only_the_library_that_does_nothing(self):
        ended = self.installed.python(TENSORFLOW)
        self.assertEqual(ended.stdout, "['libthimble_tf.so']\n[]\n", ended.stderr)
        self.assertNotRegex(ended.stderr, WORD)


if __name__ == "__main__":
    unittest.main()
