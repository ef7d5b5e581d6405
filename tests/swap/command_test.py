"""`thimble swap`: the figures of a schedule, the schedule, one clear message for each mistake."""

import json
import unittest

from tests.swap import trace_files
from tests.wheel import installation


class Swap(trace_files.TraceFiles):

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup, frameworks=False).install()

    def swap(self, *arguments):
        return self.site.run("thimble", "swap", *arguments)

    def assert_refused(self, arguments, *parts, status=2):
        ended = self.swap(*arguments)
        self.assertEqual(ended.returncode, status, ended.stderr)
        self.assertEqual(ended.stdout, "", "no header of a table without lines")
        self.assertNotIn("Traceback", ended.stderr)
        for part in parts:
            self.assertIn(part, ended.stderr)

    def test_prints_the_figures_and_writes_the_schedule(self):
        out = self.folder / "schedule.csv"
        ended = self.swap(self.trace, "--bus", "24", "--json", "--out", str(out))
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        line = json.loads(ended.stdout)
        self.assertLess(line.pop("seconds"), 60)
        self.assertTrue(line.pop("policy"))
        self.assertEqual(line, self.expected())
        rows = [row.split(",") for row in out.read_text().splitlines()]
        self.assertEqual(rows[0][:6], ["block", "key", "bytes", "offset", "after", "before"])
        self.assertEqual(rows[1][:7], ["0", "0", "20000000", "0", "a#0", "e#0", "1"])
        self.assertEqual(len(rows), 2)

    def test_prints_the_baselines_if_asked(self):
        ended = self.swap("--json", "--baselines", self.trace, self.trace)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        for line in map(json.loads, ended.stdout.splitlines()):
            self.assertEqual(line["autoswap"],
                             dict.fromkeys(("DOA", "AOA", "WDOA", "SWDOA"), 20000000))

    def test_a_limit_costs_time_if_the_bus_is_slow(self):
        ended = self.swap("--json", "--bus", "1/1", "--limit", "20000000", self.trace)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        line = json.loads(ended.stdout)
        self.assertEqual(line["peak_after"], 20000000)
        self.assertGreater(line["slowdown"], 35)  # 20 ms out and 20 ms in, in 10 and 10
        self.assertLess(line["slowdown"], 60)

    def test_a_slowdown_is_kept(self):
        ended = self.swap("--json", "--bus", "1/1", "--slowdown", "100", self.trace)
        line = json.loads(ended.stdout)
        self.assertEqual(line["peak_after"], 20000000)
        self.assertLessEqual(line["slowdown"], 100)

    def test_has_a_table_for_people(self):
        ended = self.swap(self.trace, self.trace, "--slowdown", "1", "--run-ahead", "0.1")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(len(ended.stdout.splitlines()), 3)
        self.assertIn("0.6667", ended.stdout)

    def test_says_what_every_limit_costs(self):
        ended = self.swap(self.trace, "--curve", "--json", "--bus", "1/1")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        lines = [json.loads(line) for line in ended.stdout.splitlines()]
        self.assertGreater(len(lines), 3)
        for line in lines:
            self.assertLessEqual(line["peak_after"], line["limit"])
        limits = [line["limit"] for line in lines]
        self.assertEqual(limits, sorted(limits, reverse=True))
        self.assertEqual(limits[0], 28500000)
        self.assertGreaterEqual(limits[-1], 20000000, "less cannot leave")

    def test_names_what_is_wrong(self):
        self.assert_refused([self.trace, "--curve", "--limit", "9"],
                            "--curve cannot be combined with")
        self.assert_refused([], "FILE")
        self.assert_refused([self.trace, "--slowdown", "-1"], "-1")
        self.assert_refused([self.trace, "--limit", "1", "--slowdown", "1"], "not allowed with")
        self.assert_refused([self.trace, "--bus", "fast"], "fast")
        self.assert_refused([self.trace, self.trace, "--out", "o.csv"], "o.csv", "one file")
        self.assert_refused([str(self.folder / "none.trace")], "none.trace")
        self.assert_refused([self.write("bad.trace", "O a 1 r:7 w:\n")], "bad.trace:1: '7'")
        self.assert_refused([self.trace, "--limit", "1000"], "1000 bytes", status=1)
        self.assert_refused([self.trace, "--limit", "19MiB"], "20000000 bytes are left", status=1)
        self.assert_refused([self.trace, "--out", "/nowhere/schedule.csv"],
                            "'/nowhere/schedule.csv' could not be written", status=2)
        self.assert_refused([self.trace, "--bus", "7"], "'7'", "13, 24, or OUT/IN")
        self.assert_refused([self.write("none.trace", "A 1 8\n")], "none.trace", "no O lines")


if __name__ == "__main__":
    unittest.main()
