"""Harmony trains every class of keras.layers as Keras does, or refuses it with a remedy.

Generates the table allocator/docs/007-harmony-layers.md.
"""

import concurrent.futures
import json
import os
import pathlib
import unittest

from tests.harmony_runner import layer_table
from tests.harmony_runner import training
from tests.wheel import installation

PAGE = pathlib.Path("allocator/docs/007-harmony-layers.md")
PROCESSES = 2
LIMIT = 1e-6


class Layers(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        environment = installation.Environment(cls.addClassCleanup).install()

        def part(number):
            return environment.run("python", "tests/harmony_runner/layer_case.py", str(number),
                                   str(PROCESSES), timeout=1500, THIMBLE_CONF=training.CONF,
                                   **training.QUIET)

        with concurrent.futures.ThreadPoolExecutor() as pool:
            cls.ended = list(pool.map(part, range(PROCESSES)))

    def answers(self):
        for ended in self.ended:
            self.assertEqual(ended.returncode, 0, ended.stderr[-4000:])
        return [json.loads(ended.stdout) for ended in self.ended]

    def results(self):
        return {name: result for answer in self.answers()
                for name, result in answer["results"].items()}

    def test_every_class_is_tried(self):
        self.assertEqual(sorted(self.results()), self.answers()[0]["classes"])

    def test_what_trains_does_as_in_keras(self):
        failed = [name for name, result in self.results().items() if "failed" in result]
        self.assertEqual(failed, [])
        trained = {name: result for name, result in self.results().items() if "loss" in result}
        self.assertGreater(len(trained), 100)
        for name, result in trained.items():
            with self.subTest(layer=name):
                self.assertLess(max(result[key] for key in ("loss", "evaluate", "weights")), LIMIT)
                self.assertGreater(len(set(result["losses"])), 1, "nothing was trained")

    def test_what_is_refused_is_named_before_anything_is_trained(self):
        for name, result in self.results().items():
            if "refused" in result:
                with self.subTest(layer=name):
                    self.assertEqual(result["trained"], 0)
                    self.assertRegex(result["refused"], "^layer '.*'")

    def test_the_page_says_so(self):
        made = layer_table.page(self.results())
        folder = pathlib.Path(os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR", "."))
        (folder / PAGE.name).write_text(made, encoding="utf-8")
        self.assertEqual(PAGE.read_text(encoding="utf-8"), made,
                         f"{PAGE} is out of date: the new text is in the outputs of this test")


if __name__ == "__main__":
    unittest.main()
