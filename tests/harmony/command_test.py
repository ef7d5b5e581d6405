"""The command behind `./dev harmony`: figures, files, and one clear message for what is wrong."""

import json
import subprocess
import unittest

from tests.harmony import profile_files

HARMONY = "tests/harmony/harmony"
TOPOLOGY = """\
switch a uplink 12GiB
gpu 0 switch a
gpu 1 switch a link 10GiB
nvlink 0 1 20GiB
"""


class Command(profile_files.ProfileFiles):

    def harmony(self, *arguments):
        return subprocess.run([HARMONY, *arguments], capture_output=True, text=True, check=False)

    def line(self, *arguments):
        run = self.harmony(self.profile, "--json", "--seconds", "0.2", *arguments)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout.count("\n"), 1)
        return json.loads(run.stdout)

    def assert_refused(self, arguments, *parts, status=2):
        run = self.harmony(*arguments)
        self.assertEqual(run.returncode, status, run.stderr)
        self.assertEqual(run.stdout, "")
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        for part in parts:
            self.assertIn(part, run.stderr)

    def test_json_is_one_object(self):
        for mode in ("dp", "pp", "auto"):
            line = self.line(*self.sizes, "--mode", mode)
            self.check_line(line)
            self.assertIn(line["mode"], ("dp", "pp") if mode == "auto" else (mode,))
            self.assertEqual(line["rules"], "thimble")

    def test_rules_harmony_are_the_baselines(self):
        for mode in ("dp", "pp"):
            line = self.line(*self.sizes, "--mode", mode, "--rules", "harmony")
            baseline = line["baselines"]["harmony_" + mode]
            self.assertAlmostEqual(line["seconds"], baseline["seconds"], 5)
            line = self.line(*self.sizes, "--mode", mode, "--rules", "harmony", "--prefetch")
            baseline = line["baselines"][f"harmony_{mode}_prefetch"]
            self.assertAlmostEqual(line["seconds"], baseline["seconds"], 5)

    def test_writes_plan_and_schedule(self):
        plan, schedule = self.folder / "plan.json", self.folder / "schedule.json"
        line = self.line(*self.sizes, "--plan", str(plan), "--schedule", str(schedule))
        self.assertAlmostEqual(self.check_plan(plan)["seconds"], line["seconds"], 5)
        steps = json.loads(schedule.read_text())
        self.assertAlmostEqual(max(step[10] for step in steps["steps"]), line["seconds"], 5)
        self.assertEqual(steps["plan"]["batch"], 8)

    def test_a_topology_counts(self):
        slow = self.write("slow", TOPOLOGY.replace("12GiB", "64MiB"))
        fast = self.write("fast", TOPOLOGY)
        sizes = ["--memory", "1GiB", "--batch", "8"]
        self.assertGreater(self.line(*sizes, "--topology", slow)["seconds"],
                           2 * self.line(*sizes, "--topology", fast)["seconds"])

    def test_has_a_table_for_people(self):
        run = self.harmony(self.profile, *self.sizes, "--seconds", "0.1")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        for word in ("seconds", "lru_dp_recompute", "harmony_pp_prefetch", "planned in"):
            self.assertIn(word, run.stdout)

    def test_refuses_bad_usage(self):
        p, sizes = self.profile, self.sizes
        self.assert_refused([], "no profile given", "--help")
        self.assert_refused([p, "--fast"], "'--fast'", "--help")
        self.assert_refused([p, "--gpus", "2", "--batch", "8"], "--memory is missing")
        self.assert_refused([p, "--gpus", "2", "--memory", "1GiB"], "--batch is missing")
        self.assert_refused([p, "--batch", "2", "--memory", "1GiB"], "--gpus is missing")
        self.assert_refused([p, *sizes, "--gpus", "9"], "gpus '9'", "1 to 8")
        self.assert_refused([p, *sizes, "--mode", "tp"], "'tp'", "dp, pp or auto")
        self.assert_refused([p, *sizes, "--rules", "x"], "thimble or harmony")
        self.assert_refused([p, *sizes, "--seconds", "x"], "seconds 'x'")
        self.assert_refused([p, *sizes, "--plan", ""], "--plan needs the path of a file")
        self.assert_refused([p, p, *sizes], "second profile")
        self.assert_refused([p, *sizes, "--batch", "7", "--mode", "dp"], "write 8, or mode pp")

    def test_refuses_bad_files(self):
        sizes = self.sizes
        self.assert_refused(["nowhere.csv", *sizes], "'nowhere.csv'", "No such file")
        bad = self.write("bad.csv", profile_files.HEADER + "1,0,x,1,1,1,1,1,1\n")
        self.assert_refused([bad, *sizes], "bad.csv:2: 'x' is no weight_bytes", "write a number")
        topology = self.write("topology", "gpu 0 switch a\n")
        self.assert_refused([self.profile, *sizes, "--topology", topology],
                            "topology:1: 'a' is no switch so far")
        topology = self.write("topology", TOPOLOGY)
        self.assert_refused([self.profile, *sizes, "--gpus", "3", "--topology", topology],
                            "gpus 3 is more than the 2")

    def test_names_the_layer_that_does_not_fit(self):
        self.assert_refused([self.profile, "--gpus", "2", "--memory", "250MiB", "--batch", "8"],
                            "layer 1 needs", "in backward at microbatch 1, memory is 250.00 MiB",
                            "bytes, or split the layer", status=1)

    def test_fails_if_a_file_cannot_be_written(self):
        run = self.harmony(self.profile, *self.sizes, "--seconds", "0", "--plan", "/nowhere/p.json")
        self.assertEqual(run.returncode, 1)
        self.assertIn("'/nowhere/p.json' could not be written", run.stderr)

    def test_help_names_every_figure_and_option(self):
        run = self.harmony("--help")
        self.assertEqual(run.returncode, 0)
        for word in ("seconds", "swap_bytes", "p2p_bytes", "compute_fraction", "peak_bytes",
                     "baselines", "compute_bound", "planning_seconds", "--gpus", "--memory",
                     "--batch", "--mode", "--rules", "--topology", "--prefetch", "--packers",
                     "--seconds", "--swap-limit", "--plan", "--schedule", "--gantt", "--json"):
            self.assertIn(word, run.stdout)


if __name__ == "__main__":
    unittest.main()
