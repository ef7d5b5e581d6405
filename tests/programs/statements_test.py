"""Programs lose parts and still run; the same seed gives the same program."""

import ast
import unittest

from tests.programs import generate
from tests.programs import jax_generate
from tests.programs.statements import Statement
from tests.programs.statements import pruned
from tests.programs.statements import shrunk
from tests.programs.statements import text_of

GENERATORS = (generate, jax_generate)
SEEDS = range(200)


def never():
    return False


class Statements(unittest.TestCase):

    def test_what_needs_a_missing_name_goes_with_it(self):
        function = Statement("def function_1(value_2):",
                             (Statement("value_3 = value_2 + value_9"),), "return value_3")
        kept = Statement("value_4 = 4")
        self.assertEqual(pruned((function, Statement("value_5 = function_1(1)"), kept)), (kept,))

    def test_a_body_sees_arguments_and_what_stood_before(self):
        program = (Statement("value_1 = 1"),
                   Statement("def function_2(value_3):",
                             (Statement("value_4 = value_3 + value_1"),), "return value_4"),
                   Statement("value_5 = 0\nfor _ in range(3):",
                             (Statement("value_6 = value_5 + 1"),), "value_5 = value_6"))
        self.assertEqual(pruned(program), program)

    def test_names_inside_a_function_are_not_seen_outside(self):
        inside = Statement("def function_1():", (Statement("value_2 = 1"),), "return value_2")
        self.assertEqual(pruned((inside, Statement("print(value_2)"))), (inside,))

    def test_shrinking_keeps_what_fails_and_what_it_needs(self):
        program = tuple(Statement(f"value_{i} = value_{i - 1} + 1" if i else "value_0 = 0",
                                  simpler=(f"value_{i} = 0",)) for i in range(40))
        small = shrunk(program, lambda each: "value_17 =" in text_of(each), never)
        self.assertEqual(text_of(small), "value_17 = 0\n")

    def test_shrinking_reaches_into_bodies(self):
        body = tuple(Statement(f"print({i})") for i in range(9))
        program = (Statement("def function_1():", body, "return 1"), Statement("function_1()"))
        small = shrunk(program, lambda each: "print(5)" in text_of(each), never)
        self.assertEqual(text_of(small), "def function_1():\n    print(5)\n    return 1\n")


class Generators(unittest.TestCase):

    def test_a_seed_is_a_program(self):
        for generator in GENERATORS:
            features = generator.FEATURES
            texts = [generator.source(generator.generated(seed, features), seed) for seed in SEEDS]
            again = [generator.source(generator.generated(seed, features), seed) for seed in SEEDS]
            self.assertEqual(texts, again)
            self.assertEqual(len(set(texts)), len(texts))
            for text in texts:
                ast.parse(text)

    def test_every_name_is_made_before_it_is_used(self):
        for generator in GENERATORS:
            for seed in SEEDS:
                program = generator.generated(seed, generator.FEATURES)
                self.assertEqual(text_of(pruned(program)), text_of(program))

    def test_every_feature_occurs_and_can_be_left_out(self):
        marks = {"forks": "fork", "oom": "out_of_memory(", "threads": "together(",
                 "keras": "keras.Model", "training": "GradientTape", "large": "numbers(2000, 300"}
        texts = lambda features: "".join(
            text_of(generate.generated(seed, features)) for seed in SEEDS)
        for feature, mark in marks.items():
            self.assertIn(mark, texts(("functions", feature)))
            self.assertNotIn(mark, texts(("functions",)))


if __name__ == "__main__":
    unittest.main()
