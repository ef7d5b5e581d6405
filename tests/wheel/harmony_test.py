"""`thimble harmony`: figures, plan and picture, one clear message for what is wrong."""

import json
import unittest

from tests.harmony import profile_files
from tests.wheel import installation


class Harmony(profile_files.ProfileFiles):

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup, frameworks=False).install()

    def harmony(self, *arguments):
        return self.site.run("thimble", "harmony", *arguments)

    def assert_refused(self, arguments, *parts, status=2):
        ended = self.harmony(*arguments)
        self.assertEqual(ended.returncode, status, ended.stderr)
        self.assertNotIn("Traceback", ended.stderr)
        for part in parts:
            self.assertIn(part, ended.stderr)

    def test_tells_the_figures_and_writes_plan_and_picture(self):
        plan, picture = self.folder / "plan.json", self.folder / "gantt.html"
        ended = self.harmony(self.profile, *self.sizes, "--json", "--seconds", "0.2", "--plan",
                             str(plan), "--gantt", str(picture))
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.check_line(json.loads(ended.stdout))
        self.check_plan(plan)
        page = picture.read_text()
        self.assertIn("12 layers, 8 samples on 2 GPUs", page)
        self.assertIn("weights in", page)
        for outside in ("http://", "https://", "src="):
            self.assertNotIn(outside, page)

    def test_has_a_table_for_people(self):
        ended = self.harmony(self.profile, *self.sizes, "--seconds", "0.1", "--rules", "harmony")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("lru_dp_recompute", ended.stdout)

    def test_names_what_is_wrong(self):
        self.assert_refused([], "PROFILE.csv")
        self.assert_refused([self.profile, *self.sizes, "--mode", "tp"], "'tp'")
        self.assert_refused([self.profile, "--memory", "1GiB", "--batch", "8"], "gpus is missing")
        self.assert_refused([str(self.folder / "none.csv"), *self.sizes], "none.csv")
        self.assert_refused([self.profile, "--gpus", "2", "--memory", "1MiB", "--batch", "8"],
                            "layer 1 needs", status=1)


if __name__ == "__main__":
    unittest.main()
