"""The same programs on four simulated GPUs, where any call that CUDA forbids fails them.

Simulated kernels compute nothing: this is about devices, copies and memory, not about numbers.
"""

import json
import os
import tempfile
import unittest

from tests.wheel import installation

MIB = 1 << 20
SMALL_BLOCKS = 256 << 10  # kept by threads: 0.2 to 0.6 MiB, some of it in the prediction


class Gpus(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.environment = installation.Environment(cls.addClassCleanup).install()

    def check(self, model, mode, memory, *topology):
        ended = self.environment.run(
            "python", "tests/harmony_runner/gpu_case.py", model, mode, str(memory), *topology,
            simulator=("--gpus", "4", "--memory", "4GiB"), TF_GPU_ALLOCATOR="thimble",
            TF_FORCE_GPU_ALLOW_GROWTH="true", PYTHONPATH=os.getcwd(), timeout=400)
        self.assertEqual(ended.returncode, 0, ended.stderr[-4000:])
        seen = json.loads(ended.stdout.splitlines()[-1])
        self.assertEqual(list(seen["predicted"]), [f"GPU:{i}" for i in range(4)])
        for name, predicted in seen["predicted"].items():
            self.assertLessEqual(seen["reserved"][name], memory)
            self.assertLessEqual(seen["measured"][name], seen["largest"][name] + SMALL_BLOCKS)
            print(model, mode, name, "peak / predicted", seen["measured"][name] / predicted)
        return seen

    def check_copies(self, is_pinned, **variables):
        ended = self.environment.run(
            "python", "tests/harmony_runner/copies_case.py", PYTHONPATH=os.getcwd(),
            simulator=("--gpus", "2", "--memory", "1GiB"), TF_GPU_ALLOCATOR="thimble",
            TF_FORCE_GPU_ALLOW_GROWTH="true", **variables)
        self.assertEqual(ended.returncode, 0, ended.stderr[-4000:])
        seen = json.loads(ended.stdout.splitlines()[-1])
        self.assertEqual(seen["pinned"], {"made here": False, "taken away": is_pinned})
        # The copied host tensor still exists, the copies do not.
        self.assertEqual(seen["held"], {"GPU:0": 0, "GPU:1": 0})
        self.assertTrue(seen["same"])

    def test_copies_are_pinned_and_go_when_they_are_dropped(self):
        self.check_copies(is_pinned=True)

    def test_copies_go_on_without_pinned_memory(self):
        self.check_copies(is_pinned=False, TF_GPU_HOST_MEM_LIMIT_IN_MB="1")

    def test_an_mlp_is_passed_from_gpu_to_gpu(self):
        seen = self.check("mlp", "pp", 24 * MIB)
        for name, predicted in seen["predicted"].items():
            self.assertAlmostEqual(seen["measured"][name] / predicted, 1, delta=0.05)
        self.assertGreater(seen["traffic"]["direct"], 0)
        # If Linux does not know the simulated driver's addresses, explain() says so.
        self.assertRegex(seen["explanation"],
                         "links: (those of this machine|.*0000:04:00.0 does not exist)")

    def test_a_transformer_on_every_gpu(self):
        with tempfile.NamedTemporaryFile("w", dir=os.environ.get("TEST_TMPDIR")) as file:
            file.write("switch a uplink 1GiB\n" +
                       "".join(f"gpu {number} switch a\n" for number in range(4)))
            file.flush()
            seen = self.check("transformer", "dp", 24 * MIB, file.name)
            self.assertIn(f"links: from {file.name}", seen["explanation"])
        self.assertEqual(seen["traffic"]["direct"], 0)

    def test_a_cnn_with_workspaces(self):
        self.check("cnn", "pp", 64 * MIB)


if __name__ == "__main__":
    unittest.main()
