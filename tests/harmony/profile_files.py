"""A folder with a profile, for the tests of the commands that plan training on several GPUs."""

import json
import pathlib
import tempfile
import unittest

HEADER = ("ubatch,layer,weight_bytes,fwd_gpu_s,bwd_gpu_s,upd_cpu_s,fwd_mem_bytes,bwd_mem_bytes,"
          "x_elems\n")


def profile(layers=12):
    """Equal layers of 100 MB of weights, 100 MB of work and 4 MB of input per sample."""
    rows = []
    for size in (1, 8):
        for layer in range(layers):
            work = size * 104000000
            rows.append(f"{size},{layer},100000000,{0.01 * size},{0.03 * size},0.001,"
                        f"{100000000 + work},{200000000 + work},{size * 1000000}\n")
    return HEADER + "".join(rows)


class ProfileFiles(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.profile = self.write("p.csv", profile())
        self.sizes = ["--gpus", "2", "--memory", "1GiB", "--batch", "8"]

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def check_line(self, line):
        for name in ("seconds", "swap_bytes", "p2p_bytes", "compute_fraction", "peak_bytes",
                     "planning_seconds", "compute_bound"):
            self.assertGreater(line[name], 0, name)
        self.assertLessEqual(line["peak_bytes"], 2**30)
        self.assertEqual(line["swap_bytes"], line["swap_in_bytes"] + line["swap_out_bytes"])

    def check_baselines(self, line):
        names = {"lru_dp", "lru_dp_recompute", "lru_pp", "lru_pp_recompute", "harmony_dp",
                 "harmony_pp", "harmony_dp_prefetch", "harmony_pp_prefetch"}
        self.assertEqual(set(line["baselines"]), names)
        for name in names:
            self.assertGreater(line["baselines"][name]["seconds"], line["seconds"] * 0.9, name)

    def check_plan(self, path):
        """Every layer once forward and once backward, with all samples."""
        plan = json.loads(pathlib.Path(path).read_text())
        layers = [layer for pack in plan["forward"]
                  for layer in range(pack["first"], pack["last"] + 1)]
        fused = plan["backward"][0]
        self.assertEqual(layers, list(range(fused["first"])))
        down = [layer for pack in plan["backward"]
                for layer in range(pack["last"], pack["first"] - 1, -1)]
        self.assertEqual(down, list(range(plan["layers"] - 1, -1, -1)))
        share = plan["batch"] // (plan["gpus"] if plan["mode"] == "dp" else 1)
        for pack in plan["forward"] + plan["backward"]:
            self.assertEqual(sum(pack["microbatches"]), share)
            self.assertEqual(pack["segments"][0], pack["first"])
            self.assertEqual(pack["gpu"] == -1, plan["mode"] == "dp")
        return plan
