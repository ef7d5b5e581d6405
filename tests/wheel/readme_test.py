"""Runs the examples of README.md as they are printed there."""

import pathlib
import re
import unittest

from tests.wheel import installation

README = pathlib.Path("README.md").read_text()
# The line that says how to start an example, and the example.
EXAMPLE = re.compile(r"`(\w+)=thimble python train\.py`:\n\n```python\n(.*?)```", re.DOTALL)


class Readme(unittest.TestCase):

    def test_examples_train_on_thimble_and_tell_its_figures(self):
        examples = EXAMPLE.findall(README)
        self.assertEqual([variable for variable, _ in examples],
                         ["TF_GPU_ALLOCATOR", "XLA_PYTHON_CLIENT_ALLOCATOR"])
        site = installation.Environment(self.addCleanup).install()
        for variable, example in examples:
            with self.subTest(variable):
                self.assertLessEqual(len(example.splitlines()), 6)
                ended = site.python(example, simulator=("--memory", "2GiB"), **{variable: "thimble"})
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertRegex(ended.stdout, r"'peak_bytes_in_use': [1-9]\d*")


if __name__ == "__main__":
    unittest.main()
