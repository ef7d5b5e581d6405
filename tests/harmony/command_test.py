"""`thimble harmony`: figures, plan and chart, and one clear message for each error."""

import json
import unittest

from tests.harmony import profile_files
from tests.wheel import installation


TOPOLOGY = """\
switch a uplink 12GiB
gpu 0 switch a
gpu 1 switch a link 10GiB
nvlink 0 1 20GiB
"""


class Harmony(profile_files.ProfileFiles):

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup, frameworks=False).install()

    def harmony(self, *arguments):
        return self.site.run("thimble", "harmony", *arguments)

    def assert_refused(self, arguments, *parts, status=2):
        ended = self.harmony(*arguments)
        self.assertEqual(ended.returncode, status, ended.stderr)
        self.assertEqual(ended.stdout, "")
        self.assertNotIn("Traceback", ended.stderr)
        for part in parts:
            self.assertIn(part, ended.stderr)

    def line(self, *arguments):
        ended = self.harmony(self.profile, "--json", "--seconds", "0.2", *arguments)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(ended.stdout.count("\n"), 1)
        return json.loads(ended.stdout)

    def test_tells_the_figures_and_writes_plan_and_picture(self):
        plan, picture = self.folder / "plan.json", self.folder / "gantt.html"
        schedule = self.folder / "schedule.json"
        line = self.line(*self.sizes, "--plan", str(plan), "--gantt", str(picture), "--schedule",
                         str(schedule))
        self.check_line(line)
        self.assertNotIn("baselines", line)
        self.assertAlmostEqual(self.check_plan(plan)["seconds"], line["seconds"], 5)
        steps = json.loads(schedule.read_text())
        self.assertAlmostEqual(max(step[10] for step in steps["steps"]), line["seconds"], 5)
        self.assertEqual(steps["plan"]["batch"], 8)
        page = picture.read_text()
        self.assertIn("12 layers, 8 samples on 2 GPUs", page)
        self.assertIn("weights in", page)
        for outside in ("http://", "https://", "src="):
            self.assertNotIn(outside, page)

    def test_every_mode(self):
        for mode in ("dp", "pp", "auto"):
            line = self.line(*self.sizes, "--mode", mode, "--baselines")
            self.check_line(line)
            self.check_baselines(line)
            self.assertIn(line["mode"], ("dp", "pp") if mode == "auto" else (mode,))
            self.assertEqual(line["rules"], "thimble")

    def test_rules_harmony_are_the_baselines(self):
        for mode in ("dp", "pp"):
            rules = (*self.sizes, "--mode", mode, "--rules", "harmony", "--baselines")
            line = self.line(*rules)
            baseline = line["baselines"]["harmony_" + mode]
            self.assertAlmostEqual(line["seconds"], baseline["seconds"], 5)
            line = self.line(*rules, "--prefetch")
            baseline = line["baselines"][f"harmony_{mode}_prefetch"]
            self.assertAlmostEqual(line["seconds"], baseline["seconds"], 5)

    def test_a_topology_counts(self):
        slow = self.write("slow", TOPOLOGY.replace("12GiB", "64MiB"))
        fast = self.write("fast", TOPOLOGY)
        sizes = ["--memory", "1GiB", "--batch", "8"]
        self.assertGreater(self.line(*sizes, "--topology", slow)["seconds"],
                           2 * self.line(*sizes, "--topology", fast)["seconds"])

    def test_has_a_table_for_people(self):
        ended = self.harmony(self.profile, *self.sizes, "--seconds", "0.1", "--baselines")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        for word in ("seconds", "lru_dp_recompute", "harmony_pp_prefetch", "planned in"):
            self.assertIn(word, ended.stdout)

    def test_names_what_is_wrong(self):
        self.assert_refused([], "PROFILE.csv")
        profile, sizes = self.profile, self.sizes
        self.assert_refused([profile, "--gpus", "2", "--batch", "8"], "--memory")
        self.assert_refused([profile, "--gpus", "2", "--memory", "1GiB"], "--batch")
        self.assert_refused([profile, "--memory", "1GiB", "--batch", "8"], "gpus is missing")
        self.assert_refused([profile, *sizes, "--gpus", "9"], "gpus '9'", "1 to 8")
        self.assert_refused([profile, *sizes, "--mode", "tp"], "'tp'", "dp, pp or auto")
        self.assert_refused([profile, *sizes, "--rules", "x"], "thimble or harmony")
        self.assert_refused([profile, *sizes, "--seconds", "x"], "seconds 'x'")
        self.assert_refused([profile, *sizes, "--batch", "7", "--mode", "dp"], "8, or mode pp")
        self.assert_refused([profile, *sizes, "--plan", "/nowhere/p.json", "--seconds", "0"],
                            "'/nowhere/p.json' could not be written")

    def test_names_what_is_wrong_in_files(self):
        sizes = self.sizes
        self.assert_refused([str(self.folder / "none.csv"), *sizes], "none.csv", "No such file")
        bad = self.write("bad.csv", profile_files.HEADER + "1,0,x,1,1,1,1,1,1\n")
        self.assert_refused([bad, *sizes], "bad.csv:2: 'x' is not a valid weight_bytes", "write a number")
        topology = self.write("topology", "gpu 0 switch a\n")
        self.assert_refused([self.profile, *sizes, "--topology", topology],
                            "topology:1: 'a' is not a switch described above")
        topology = self.write("topology", TOPOLOGY)
        self.assert_refused([self.profile, *sizes, "--gpus", "3", "--topology", topology],
                            "gpus 3 is more than the 2")

    def test_names_the_layer_that_does_not_fit(self):
        self.assert_refused([self.profile, "--gpus", "2", "--memory", "250MiB", "--batch", "8"],
                            "layer 1 needs", "in backward at microbatch 1, memory is 250.00 MiB",
                            "bytes, or split the layer", status=1)


if __name__ == "__main__":
    unittest.main()
