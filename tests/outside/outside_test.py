"""`./dev outside` must notice programs that differ, crash, hang or are unstable."""

import functools
import pathlib
import sys
import tempfile
import textwrap
import time
import unittest
from unittest import mock

from tests.outside import compare
from tests.outside import modes
from tests.outside import page
from tests.outside import session
from tests.outside import units

RECORDER = f"""
import os, signal, sys, time
sys.path.insert(0, {str(units.FOLDER)!r})
import recording
recorder = recording.Recorder()
stock = "THIMBLE_CONF" not in os.environ
done = recording.Record(os.environ[recording.VARIABLE]).tests
def test(name, answer):
    if name not in done:
        recorder.start(name)
        recorder.test(name, answer())
"""
END = "\nrecorder.end(allocations=1, peak_in_use=1000)\n"


def is_running(pid):
    try:
        return "Z (zombie)" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):  # it may end while it is read
        return False


class Outside(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.ran = []
        self.explain()

    def explain(self, *rows):
        path = self.folder / "explained.csv"
        path.write_text("suite,mode,test,shows,reason\n" + "\n".join(rows) + "\n")
        patch = mock.patch.object(session, "EXPLAINED", path)
        patch.start()
        self.addCleanup(patch.stop)

    def judge(self, program, mode=modes.PLAIN, seconds=20, end=END, tries=3, **more):
        """The page of a program in a mode, and verdicts by test."""
        text = RECORDER + textwrap.dedent(program) + end
        unit = units.Unit("keras", "unit", ("-c", text), (), seconds,
                          lambda mode, peak, _: modes.tensorflow(mode, peak, hard=True),
                          **more)
        machine = units.Machine(sys.executable, sys.executable, "none", self.folder / "results",
                                "this wheel")
        verdicts, stale = session.run(units.Runner(machine, self.ran.append), [(unit, [mode])], 1,
                                      tries)
        return page.Page(verdicts, stale, 0), {verdict.test: verdict for verdict in verdicts}

    def test_the_same_is_well(self):
        result, verdicts = self.judge('test("a", lambda: [1, "x"])')
        self.assertTrue(result.is_well, result.text())
        self.assertEqual({v.kind for v in verdicts.values()}, {compare.SAME})
        self.assertEqual(set(verdicts), {"a", "unit (leaving)"})

    def test_another_number_is_a_defect(self):
        result, verdicts = self.judge('test("a", lambda: 1 if stock else 2); test("b", lambda: 1)')
        self.assertFalse(result.is_well)
        self.assertEqual(verdicts["a"].kind, compare.DEFECT)
        self.assertEqual(verdicts["b"].kind, compare.SAME)
        self.assertIn("again in 3 of 3 runs", verdicts["a"].reason)
        self.assertIn("defect: keras, plain, a: 2", result.summary())

    def test_a_difference_that_comes_once_is_a_defect(self):
        _, verdicts = self.judge('''
            seen = os.path.exists("{0}"); open("{0}", "a")
            test("a", lambda: 1 if stock or seen else 2)
        '''.replace("open(", "not stock and open(").format(self.folder / "seen"))
        self.assertEqual(verdicts["a"].kind, compare.DEFECT)
        self.assertIn("again in 0 of 3 runs; 3 stock runs agree", verdicts["a"].reason)

    def test_what_is_unstable_in_stock_is_no_defect(self):
        result, verdicts = self.judge('test("a", time.time)')
        self.assertEqual(verdicts["a"].kind, compare.UNSTABLE)
        self.assertTrue(result.is_well)

    def test_what_is_unstable_in_stock_is_compared_where_it_is_not(self):
        steady = functools.partial(units.Unit, "keras", "steady", sources=(), seconds=20,
                                   settings=lambda mode, peak, _: modes.tensorflow(mode, peak, True))
        for answer, kind in (("1", compare.SAME), ("1 if stock else 2", compare.DEFECT),
                             ("time.time()", compare.UNSTABLE)):
            with self.subTest(answer):
                program = RECORDER + f'test("a", lambda: {answer})' + END
                _, verdicts = self.judge('test("a", time.time)',
                                         steady=steady(command=("-c", program)))
                self.assertEqual(verdicts["a"].kind, kind)

    def test_what_depends_on_other_tests_in_stock_is_no_defect_unless_it_differs_alone(self):
        alone = functools.partial(units.Unit, "keras", "alone", sources=(), seconds=20,
                                  settings=lambda mode, peak, _: modes.tensorflow(mode, peak, True))
        for answers, kind in (('"p" if stock else "f"', compare.DEFECT), ('"f"', compare.UNSTABLE)):
            with self.subTest(answers):
                program = RECORDER + f'test("a", lambda: {answers})' + END
                _, verdicts = self.judge('test("a", lambda: "P" if stock else "f")',
                                         narrow=lambda _: alone(command=("-c", program)))
                self.assertEqual(verdicts["a"].kind, kind)

    def test_a_crash_is_one_difference_and_other_tests_go_on(self):
        result, verdicts = self.judge('''
            test("a", lambda: 1)
            test("b", lambda: 1 if stock else os.kill(os.getpid(), signal.SIGSEGV))
            test("c", lambda: 1)
        ''', many=True)
        self.assertEqual(verdicts["b"].answer, "crashed: SIGSEGV")
        self.assertEqual([verdicts[name].kind for name in "abc"],
                         [compare.SAME, compare.DEFECT, compare.SAME])
        self.assertFalse(result.is_well)

    def test_a_program_of_one_test_that_crashes_is_one_difference(self):
        _, verdicts = self.judge('''
            test("a", lambda: 1 if stock else os.kill(os.getpid(), signal.SIGSEGV))
        ''', tries=1)
        self.assertEqual({name: v.answer for name, v in verdicts.items()},
                         {"a": "crashed: SIGSEGV"})

    def test_a_crash_at_the_end_is_a_difference(self):
        _, verdicts = self.judge('test("a", lambda: 1)',
                                 end=END + "stock or os.kill(os.getpid(), signal.SIGABRT)")
        self.assertEqual(verdicts["a"].kind, compare.SAME)
        self.assertEqual(verdicts["unit (leaving)"].answer, "crashed: SIGABRT")

    def test_a_program_that_hangs_is_ended_with_its_children(self):
        pid = self.folder / "pid"
        _, verdicts = self.judge(f'''
            def hang():
                if not stock:
                    child = os.fork()
                    if child:
                        open("{pid}", "w").write(str(child))
                    time.sleep(60)
                return 1
            test("a", hang)
        ''', seconds=2, tries=1)
        self.assertEqual(verdicts["a"].answer, "hung")
        end = time.monotonic() + 20  # a signal takes its time on a busy machine
        while is_running(pid.read_text()):
            self.assertLess(time.monotonic(), end, "the child still runs")
            time.sleep(0.01)

    def test_a_program_that_fails_in_stock_proves_nothing(self):
        result, verdicts = self.judge('test("unit", lambda: "out of memory")')
        self.assertEqual(verdicts["unit"].kind, compare.DEFECT)
        self.assertFalse(result.is_well)

    def test_a_run_that_thimble_did_not_serve_is_a_defect(self):
        result, verdicts = self.judge('test("a", lambda: 1)', end="\nrecorder.end()")
        self.assertEqual(verdicts["unit (served)"].kind, compare.DEFECT)
        self.assertFalse(result.is_well)

    def test_an_explanation_must_be_true_of_what_is_seen(self):
        differs = 'test("a", lambda: 1 if stock else "out of memory")'
        self.explain("keras,plain,a,out of memory,there is none")
        result, verdicts = self.judge(differs)
        self.assertEqual(verdicts["a"].kind, compare.EXPLAINED)
        self.assertTrue(result.is_well)
        self.assertIn("there is none", result.text())
        self.explain("keras,plain,a,a crash,it crashes")
        result, verdicts = self.judge(differs)
        self.assertEqual(verdicts["a"].kind, compare.DEFECT)
        self.assertIn("no longer true: keras, plain, a: it crashes", result.summary())

    def test_an_explanation_of_what_does_not_differ_fails(self):
        self.explain("keras,plain,a,.,it differs", "keras,swap,a,.,of another mode")
        result, _ = self.judge('test("a", lambda: 1)')
        self.assertFalse(result.is_well)
        self.assertIn("it differs", result.text())
        self.assertNotIn("of another mode", result.text())

    def test_swapping_has_its_part_of_the_peak(self):
        _, verdicts = self.judge('test("a", lambda: os.environ.get("THIMBLE_CONF"))', modes.SWAP)
        self.assertEqual(verdicts["a"].answer, "device:cpu,swap:auto,limit:600")

    def test_what_was_run_is_not_run_again_unless_the_program_changed(self):
        for program, runs in (("1", 2), ("1", 2), ("2", 4)):
            self.judge(f'test("a", lambda: {program})')
            self.assertEqual(len(self.ran), runs, self.ran)

    def test_an_interrupted_run_is_taken_up_where_it_was(self):
        program = '''
            test("a", lambda: open("{0}", "a").write("a"))
            test("b", lambda: 1)
        '''.format(self.folder / "count")
        self.judge(program, many=True)
        for path in (self.folder / "results").rglob("*.jsonl"):
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join(lines[:3]))  # the key, and the first test
        self.judge(program, many=True)
        self.assertEqual((self.folder / "count").read_text(), "aa")


if __name__ == "__main__":
    unittest.main()
