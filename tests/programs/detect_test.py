"""The fuzzer finds differences, crashes, exceptions and hangs."""

import time
import unittest

from tests.programs import fuzz
from tests.programs import processes
from tests.programs import tensorflow_subject as subject
from tests.programs.statements import Statement
from tests.programs.statements import text_of
from tests.programs.verdict import SAME
from tests.programs.verdict import UNSTEADY
from tests.programs.verdict import UNUSABLE

ON_THIMBLE = 'if "THIMBLE_CONF" in os.environ:\n    '
SOUND = tuple(Statement(f'tensor_{i} = tf.sin(tf.fill([100, 100], {i}.0))\nshow("{i}", tensor_{i})')
              for i in range(3))


def judged(*lines, mode="plain"):
    return subject.judged(subject.source(SOUND + tuple(map(Statement, lines)), 1), [mode])[0]


class Detect(unittest.TestCase):

    def check(self, verdict, kind, *words):
        self.assertEqual(verdict.kind, kind, verdict)
        for word in words:
            self.assertIn(word, verdict.detail)

    def test_a_sound_program_is_the_same(self):
        for mode in subject.MODES:
            self.check(judged(mode=mode), SAME)

    def test_one_bit(self):
        self.check(judged(f'{ON_THIMBLE}tensor_1 += 1e-7', 'show("after", tensor_1)'), "differs",
                   "line 4", "limit:")

    def test_a_crash(self):
        self.check(judged(f"{ON_THIMBLE}os.abort()"), "ended otherwise", "SIGABRT",
                   "after 3 of 3 lines")

    def test_a_hang(self):
        outcome = processes.run("", lambda _: time.sleep(600), seconds=1)
        self.assertEqual(outcome.end, processes.HUNG)

    def test_an_exception(self):
        self.check(judged(f'{ON_THIMBLE}raise KeyError("here")'), "ended otherwise", "KeyError")

    def test_a_line_too_few(self):
        self.check(judged('if "THIMBLE_CONF" not in os.environ:\n    print("stock")'),
                   "ended otherwise", "done, after 3 of 4 lines")

    def test_memory_runs_out_cleanly_only_where_it_is_short(self):
        line = f"{ON_THIMBLE}tf.fill([1 << 30], 1.0)"
        self.check(judged(line), "ended otherwise", "ran out")
        self.check(judged(line, mode="swap"), "ran out")

    def test_what_stock_cannot_do_is_no_difference(self):
        self.check(judged("raise ValueError"), UNUSABLE, "ValueError")
        self.check(judged("print(os.getpid())"), UNSTEADY)

    def test_a_failing_program_is_shrunk(self):
        program = SOUND + (Statement(f'{ON_THIMBLE}tensor_1 += 1e-7'),
                           Statement('show("after", tensor_1)'), Statement('show("more", [1, 2])'))
        verdict = subject.judged(subject.source(program, 1), ["plain"])[0]
        small = fuzz.shrunk(subject, program, 1, verdict, seconds=600)
        self.assertEqual(text_of(small).splitlines(), [
            *SOUND[1].lines(), *program[3].lines(), 'show("after", tensor_1)'])


if __name__ == "__main__":
    unittest.main()
