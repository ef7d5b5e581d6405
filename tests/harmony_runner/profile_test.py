"""`thimble harmony` reads a model's profile, and a dry run explains a plan."""

import csv
import json
import os
import unittest

from tests.wheel import installation

COLUMNS = ["ubatch", "layer", "weight_bytes", "fwd_gpu_s", "bwd_gpu_s", "upd_cpu_s",
           "fwd_mem_bytes", "bwd_mem_bytes", "x_elems"]


class Profile(unittest.TestCase):

    def test_a_transformer(self):
        environment = installation.Environment(self.addCleanup).install()
        path = os.path.join(os.environ["TEST_TMPDIR"], "profile.csv")
        ended = environment.run("python", "tests/harmony_runner/profile_case.py", path, timeout=300,
                                THIMBLE_CONF="device:cpu,chunk:64KiB", TF_CPP_MIN_LOG_LEVEL="3",
                                CUDA_VISIBLE_DEVICES="", PYTHONPATH=os.getcwd())
        self.assertEqual(ended.returncode, 0, ended.stderr[-4000:])
        seen = json.loads(ended.stdout)
        with open(path, encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0]), COLUMNS)
        self.assertEqual({row["ubatch"] for row in rows}, {"1", "4"})
        small = [row for row in rows if row["ubatch"] == "1"]
        self.assertEqual(sum(int(row["weight_bytes"]) for row in small), seen["weights"])
        for one, four in zip(small, rows[len(small):]):
            self.assertEqual(one["layer"], four["layer"])
            self.assertGreater(int(four["bwd_mem_bytes"]), int(one["weight_bytes"]))
            self.assertGreater(int(four["bwd_mem_bytes"]), int(one["bwd_mem_bytes"]))
        self.assertTrue(seen["unchanged"])
        for part in ("23 layers", "batches of 16 on CPU:1, CPU:2", "predicted, at most",
                     "forward and backward", "of 10.00 MiB"):
            self.assertIn(part, seen["explanation"])
        planned = environment.run("thimble", "harmony", path, "--gpus", "2", "--memory", "64MiB",
                                  "--batch", "4", "--json")
        self.assertEqual(planned.returncode, 0, planned.stderr)
        self.assertGreater(json.loads(planned.stdout)["seconds"], 0)


if __name__ == "__main__":
    unittest.main()
