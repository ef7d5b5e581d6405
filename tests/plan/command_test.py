"""The command behind `./dev plan`: figures, files, and one clear message for what is wrong."""

import json
import subprocess
import unittest

from tests.plan import problem_files

PLAN = "tests/plan/plan"


class Command(problem_files.ProblemFiles):

    def run_plan(self, *arguments):
        return subprocess.run([PLAN, *arguments], capture_output=True, text=True, check=False)

    def assert_refused(self, arguments, *parts):
        run = self.run_plan(*arguments)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertEqual(run.stdout, "")
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        for part in parts:
            self.assertIn(part, run.stderr)

    def test_json_is_one_object_per_file(self):
        run = self.run_plan("--json", self.problem, self.problem)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        for line in run.stdout.splitlines():
            result = json.loads(line)
            self.assertLess(result.pop("seconds"), 5)
            self.assertEqual(result, {"file": self.problem, "buffers": 3, "height": 160,
                                      "lower_bound": 160, "ratio": 1, "smartpool": 1})
        self.assertEqual(len(run.stdout.splitlines()), 2)

    def test_a_trace_is_a_problem_too(self):
        trace = self.write("t.trace", "A 0 100\nA 1 60\nF 1\nA 1 50\nF 0\nA 2 100\n")
        run = self.run_plan("--json", trace)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        result = json.loads(run.stdout)
        self.assertEqual((result["buffers"], result["lower_bound"]), (4, 160))
        self.assertEqual(result["height"], 160)
        self.assert_refused([self.write("none.trace", "# nothing\n")], "none.trace")

    def test_writes_the_plan(self):
        out = self.folder / "plan.csv"
        self.assertEqual(self.run_plan(self.problem, "--out", str(out)).returncode, 0)
        rows = [line.split(",") for line in out.read_text().splitlines()]
        self.assertEqual(rows[0], ["id", "offset"])
        offsets = {name: int(offset) for name, offset in rows[1:]}
        self.assertEqual(set(offsets), {"a", "b", "c"})
        for other, size in (("b", 60), ("c", 50)):
            self.assertTrue(offsets["a"] + 100 <= offsets[other] or
                            offsets[other] + size <= offsets["a"])

    def test_refuses_bad_usage(self):
        self.assert_refused([], "no file given", "--help")
        self.assert_refused([self.problem, "--fast"], "'--fast'", "--help")
        self.assert_refused([self.problem, "--seconds", "-1"], "--seconds '-1'", "0 to 86400")
        self.assert_refused([self.problem, "--seconds", "nan"], "--seconds 'nan'")
        self.assert_refused([self.problem, "--seed", "x"], "--seed 'x'")
        self.assert_refused([self.problem, "--out="], "--out needs the path")
        self.assert_refused([self.problem, self.problem, "--out", "x"], "'x' is for one file")

    def test_refuses_bad_files(self):
        self.assert_refused(["nowhere.csv"], "'nowhere.csv'", "No such file")
        self.assert_refused([self.write("bad.csv", "a,1,2,x\n")], "bad.csv:1: 'x' is no size")
        self.assert_refused([self.write("none.csv", "id,lower,upper,size\n")], "has no buffers")

    def test_fails_if_the_plan_cannot_be_written(self):
        run = self.run_plan(self.problem, "--out", "/nowhere/plan.csv")
        self.assertEqual(run.returncode, 1)
        self.assertIn("'/nowhere/plan.csv' could not be written", run.stderr)

    def test_help_names_every_figure(self):
        run = self.run_plan("--help")
        self.assertEqual(run.returncode, 0)
        for word in ("buffers", "height", "lower_bound", "ratio", "seconds", "--out", "--seed"):
            self.assertIn(word, run.stdout)


if __name__ == "__main__":
    unittest.main()
