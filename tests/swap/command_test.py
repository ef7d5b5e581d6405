"""The command behind `./dev swap`: figures, files, and one clear message for what is wrong."""

import json
import subprocess
import unittest

from tests.swap import trace_files

SWAP = "tests/swap/swap"


class Command(trace_files.TraceFiles):

    def run_swap(self, *arguments):
        return subprocess.run([SWAP, *arguments], capture_output=True, text=True, check=False)

    def assert_refused(self, arguments, *parts, status=2):
        run = self.run_swap(*arguments)
        self.assertEqual(run.returncode, status, run.stderr)
        self.assertEqual(run.stdout, "")
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        for part in parts:
            self.assertIn(part, run.stderr)

    def test_json_is_one_object_per_file(self):
        run = self.run_swap("--json", "--bus", "24", self.trace, self.trace)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        for line in run.stdout.splitlines():
            result = json.loads(line)
            self.assertLess(result.pop("seconds"), 5)
            self.assertTrue(result.pop("policy"))
            self.assertEqual(result, self.expected())
        self.assertEqual(len(run.stdout.splitlines()), 2)

    def test_a_limit_costs_time_if_the_bus_is_slow(self):
        run = self.run_swap("--json", "--bus", "1/1", "--limit", "20000000", self.trace)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        result = json.loads(run.stdout)
        self.assertEqual(result["peak_after"], 20000000)
        self.assertGreater(result["slowdown"], 35)  # 20 ms out and 20 ms in, in 10 and 10
        self.assertLess(result["slowdown"], 60)

    def test_a_slowdown_is_kept(self):
        run = self.run_swap("--json", "--bus", "1/1", "--slowdown", "100", self.trace)
        result = json.loads(run.stdout)
        self.assertEqual(result["peak_after"], 20000000)
        self.assertLessEqual(result["slowdown"], 100)

    def test_the_curve_falls_until_nothing_can_leave(self):
        run = self.run_swap("--json", "--curve", "--bus", "1/1", self.trace)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        limits = [line["limit"] for line in lines]
        self.assertEqual(limits, sorted(limits, reverse=True))
        self.assertEqual(limits[0], 28500000)
        self.assertGreaterEqual(limits[-1], 20000000)
        for line in lines:
            self.assertLessEqual(line["peak_after"], line["limit"])
        table = self.run_swap("--curve", self.trace)
        self.assertEqual(len(table.stdout.splitlines()), len(lines) + 1)

    def test_writes_the_schedule(self):
        out = self.folder / "schedule.csv"
        self.assertEqual(self.run_swap(self.trace, "--out", str(out)).returncode, 0)
        rows = [line.split(",") for line in out.read_text().splitlines()]
        self.assertEqual(rows[0][:6], ["block", "key", "bytes", "offset", "after", "before"])
        self.assertEqual(rows[1][:7], ["0", "0", "20000000", "0", "a#0", "e#0", "1"])

    def test_refuses_bad_usage(self):
        self.assert_refused([], "no file given", "--help")
        self.assert_refused([self.trace, "--fast"], "'--fast'", "--help")
        self.assert_refused([self.trace, "--limit", "x"], "'x'")
        self.assert_refused([self.trace, "--slowdown", "-1"], "'-1'", "0 to 1000")
        self.assert_refused([self.trace, "--bus", "7"], "'7'", "13, 24, or OUT/IN")
        self.assert_refused([self.trace, "--limit", "1", "--slowdown", "1"], "exclude each other")
        self.assert_refused([self.trace, "--curve", "--limit", "1"], "--curve goes without")
        self.assert_refused([self.trace, self.trace, "--out", "x"], "'x' is for one file")

    def test_refuses_bad_files(self):
        self.assert_refused(["nowhere.trace"], "'nowhere.trace'", "No such file")
        self.assert_refused([self.write("none.trace", "A 1 8\n")], "none.trace", "no O lines")
        self.assert_refused([self.write("bad.trace", "A 1 8\nO x 1 r:2 w:\n")], "bad.trace:2: '2'")

    def test_fails_if_there_is_no_schedule_or_it_cannot_be_written(self):
        self.assert_refused([self.trace, "--limit", "19MiB"], "20000000 bytes are left", status=1)
        self.assert_refused([self.trace, "--out", "/nowhere/schedule.csv"],
                            "'/nowhere/schedule.csv' could not be written", status=1)
        with open("/dev/full", "w", encoding="utf-8") as full:
            run = subprocess.run([SWAP, self.trace], stdout=full, stderr=subprocess.PIPE, text=True,
                                 check=False)
        self.assertEqual((run.returncode, run.stderr),
                         (1, "swap: standard output could not be written\n"))

    def test_help_names_every_figure(self):
        run = self.run_swap("--help")
        self.assertEqual(run.returncode, 0)
        for word in (*self.expected(), "policy", "seconds", "--limit", "--slowdown", "--bus"):
            if word not in ("file", "swaps"):
                self.assertIn(word, run.stdout)


if __name__ == "__main__":
    unittest.main()
