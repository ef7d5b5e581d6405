"""What cannot be trained is refused by name before training, with the memory that is enough."""

import json
import os
import re
import unittest

from tests.wheel import installation

SAID = {
    "layer_that_does_not_fit": ("layer 'wider' alone needs ", "memory is 8388608", "give at least"),
    "plan_that_does_not_fit": ("first to last needs up to ", "CPU:1", "memory is 262144"),
    "plan_that_misses_stages": ("forward tasks are for stages none",
                                "stages 0 to 0 of the model's 2"),
    "plan_that_computes_stages_twice": ("backward tasks are for stages 0 to 1, 1 to 1",
                                        "each once"),
    "plan_with_more_stages_than_there_are": ("backward tasks are for stages 0 to 1, 2 to 2",
                                            "stages 0 to 1 of the model's 2"),
    "plan_without_backward": ("backward has no task",),
    "plan_for_more_devices": ("for 3 devices, but 2 are given",),
    "plan_on_a_device_that_is_not_there": ("gpu 2", "valid are 0 to 1"),
    "plan_with_empty_microbatches": ("microbatches (8, 0, 8)", "from 1"),
    "plan_that_saves_what_nobody_restores": ("saved forward tasks", "with_saved()"),
    "memory_that_is_none": ("memory is 0", "4GiB"),
    "memory_that_is_no_size": ("'lots' is not a size",),
    "device_that_is_not_there": ("no device 'GPU:7'", "CPU:0, CPU:1, CPU:2"),
    "host_as_device": ("CPU:0 is the host",),
    "unknown_mode": ("'fast'", "'auto', 'pp' and 'dp'"),
    "model_with_a_call_of_its_own": ("model 'own'", "class Own", "call()",
                                     "keras.Model(x, model.call(x))"),
    "train_step_of_its_own": ("model 'own'", "its own train_step()"),
    "stateful_recurrence": ("layer 'goes_on' is stateful",),
    "shared_state_that_does_not_fit": ("layer 'shared' alone needs ", "one pack",
                                       "give each place a layer of its own"),
    "random_numbers_of_tensorflow": ("layer 'noise'", "op RandomStandardNormal",
                                     "keras.random.SeedGenerator"),
    "random_numbers_of_python": ("layer 'choice'", "Python's or NumPy's random",
                                 "keras.random.SeedGenerator"),
    "weight_that_is_assigned": ("layer 'spectral'", "'kernel'", "kernel_constraint"),
    "sparse_input": ("'words'", "sparse tensor", "sparse=False"),
    "without_a_loss": ("compiled without a loss", "give compile() a loss"),
    "not_compiled": ("model 'raw' is not compiled",),
    "not_built": ("model 'raw' is not built",),
    "loss_that_sums_up_nothing": ("reduction 'none'",),
    "topology_that_is_not_there": ("'nowhere'", "there is no such file", "thimble topology"),
    "topology_with_too_few_gpus": ("gpus 2 is more than the 1",),
    "variable_of_another_layer": ("layer 'reads'", "'elsewhere:0'", "not one of its own"),
}


class Refusals(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        environment = installation.Environment(cls.addClassCleanup).install()
        cls.ended = environment.run("python", "tests/harmony_runner/refusal_cases.py", timeout=300,
                                    THIMBLE_CONF="device:cpu,chunk:64KiB,retry_ms:2000",
                                    TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="",
                                    PYTHONPATH=os.getcwd())

    def answer(self):
        self.assertEqual(self.ended.returncode, 0, self.ended.stderr[-4000:])
        return json.loads(self.ended.stdout)

    def test_each_is_refused_by_name(self):
        said = self.answer()["said"]
        self.assertEqual(set(said), set(SAID))
        for case, parts in SAID.items():
            for part in parts:
                with self.subTest(case=case):
                    self.assertIn(part, said[case])

    def test_the_number_that_would_do_is_right(self):
        """A dense layer of 2048 x 2048 needs weights, sums of gradients and one gradient."""
        said = self.answer()["said"]["layer_that_does_not_fit"]
        number = re.search(r"give at least (\d+)", said)
        self.assertAlmostEqual(int(number.group(1)) / (3 * 4 * 2048 * 2048), 1, delta=0.02)

    def test_a_refused_model_is_as_it_was(self):
        self.assertEqual(self.answer()["afterwards"], [True, 0, True])


if __name__ == "__main__":
    unittest.main()
