"""`thimble plan`: the figures of a plan, the plan itself, one clear message for each mistake."""

import json
import unittest

from tests.plan import problem_files
from tests.terminal import terminal
from tests.wheel import installation


class Plan(problem_files.ProblemFiles):

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup, frameworks=False).install()

    def plan(self, *arguments):
        return self.site.run("thimble", "plan", *arguments)

    def assert_refused(self, arguments, *parts):
        ended = self.plan(*arguments)
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertEqual(ended.stdout, "", "no header of a table without lines")
        self.assertNotIn("Traceback", ended.stderr)
        for part in parts:
            self.assertIn(part, ended.stderr)

    def test_prints_the_figures_and_writes_the_plan(self):
        out = self.folder / "plan.csv"
        ended = self.plan(self.problem, "--seconds", "1", "--json", "--out", str(out))
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        line = json.loads(ended.stdout)
        self.assertLess(line.pop("seconds"), 60)
        self.assertEqual(line, {"file": self.problem, "buffers": 3, "height": 160,
                                "lower_bound": 160, "ratio": 1})
        rows = [row.split(",") for row in out.read_text().splitlines()]
        self.assertEqual(rows[0], ["id", "offset"])
        offsets = {name: int(offset) for name, offset in rows[1:]}
        self.assertEqual(set(offsets), {"a", "b", "c"})
        for other, size in (("b", 60), ("c", 50)):
            self.assertTrue(offsets["a"] + 100 <= offsets[other] or
                            offsets[other] + size <= offsets["a"])

    def test_prints_the_baseline_if_asked(self):
        ended = self.plan("--json", "--baselines", "--seconds", "1", self.problem, self.problem)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        lines = [json.loads(line) for line in ended.stdout.splitlines()]
        self.assertEqual([line["smartpool"] for line in lines], [1, 1])

    def test_a_trace_is_a_problem_too(self):
        trace = self.write("t.trace", "A 0 100\nA 1 60\nF 1\nA 1 50\nF 0\nA 2 100\n")
        ended = self.plan("--json", trace, "--seconds", "1")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        line = json.loads(ended.stdout)
        self.assertEqual((line["buffers"], line["lower_bound"], line["height"]), (4, 160, 160))
        self.assert_refused([self.write("none.trace", "# nothing\n")], "none.trace", "nothing")

    def test_people_see_how_long_it_takes(self):
        for command in (["plan", self.problem, "--seconds", "1"], ["plan", self.problem, "--json"]):
            watched = terminal.Program([str(self.site.folder / "bin" / "thimble"), *command],
                                       of=("stderr",), env=self.site.variables({}))
            out = watched.end()
            self.assertEqual(watched.process.returncode, 0, watched.seen)
            self.assertIn(command[1], out)
            seconds = "1" if "--seconds" in command else "5"
            self.assertIn(f"\r\x1b[K{command[1]}  [--------------------]  0 of {seconds} s",
                          watched.seen)
            self.assertTrue(watched.seen.endswith("\r\x1b[K"), watched.seen)

    def test_has_a_table_for_people(self):
        ended = self.plan(self.problem, self.problem, "--seconds", "0")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(len(ended.stdout.splitlines()), 3)
        self.assertIn("1.000000", ended.stdout)

    def test_names_what_is_wrong(self):
        self.assert_refused([], "FILE")
        self.assert_refused([self.problem, "--fast"], "--fast")
        self.assert_refused([self.problem, "--seconds", "-1"], "'-1.0'", "0 to 86400")
        self.assert_refused([self.problem, "--seconds", "nan"], "'nan'")
        self.assert_refused([self.problem, "--seed", "-1"], "-1")
        self.assert_refused([self.problem, self.problem, "--out", "o.csv"], "o.csv", "one file")
        self.assert_refused([str(self.folder / "none.csv")], "none.csv")
        self.assert_refused([self.write("bad.csv", "id,lower,upper,size\na,5,1,1\n")], "bad.csv:2")
        self.assert_refused([self.write("empty.csv", "id,lower,upper,size\n")], "no buffers")
        self.assert_refused([self.problem, "--out", str(self.folder / "no" / "p.csv")], "p.csv")


if __name__ == "__main__":
    unittest.main()
