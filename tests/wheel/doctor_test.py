"""`thimble doctor` in several situations: one line per check, and a reliable exit status."""

import json
import shutil
import unittest

from tests.wheel import installation

TURNED_ON = {"TF_GPU_ALLOCATOR": "thimble", "XLA_PYTHON_CLIENT_ALLOCATOR": "Thimble"}
# (variables, the one that is judged, status, a part of the text) for every rule.
VARIABLES = (
    ({"TF_GPU_ALLOCATOR": "thimble"}, "TF_GPU_ALLOCATOR", "ok", "serves TensorFlow"),
    ({"TF_GPU_ALLOCATOR": "memory_guard"}, "TF_GPU_ALLOCATOR", "ignored", "does not use Thimble"),
    ({"XLA_PYTHON_CLIENT_ALLOCATOR": "Thimble"}, "XLA_PYTHON_CLIENT_ALLOCATOR", "ok", "serves JAX"),
    ({"THIMBLE_CONF": "limit:1GiB"}, "THIMBLE_CONF", "ignored", "neither"),
    ({"THIMBLE_CONF": "limti:1GiB"}, "THIMBLE_CONF", "wrong", "'limti'"),
    ({**TURNED_ON, "THIMBLE_CONF": "limit:1GiB"}, "THIMBLE_CONF", "ok", "limit:1GiB"),
    ({**TURNED_ON, "THIMBLE_CONF": "front:bfc"},
     "THIMBLE_CONF", "wrong", "jax does not know this option"),
    ({**TURNED_ON, "THIMBLE_CONF": "device:1"}, "THIMBLE_CONF", "wrong", "chooses the GPUs"),
    ({"TF_GPU_ALLOCATOR": "thimble", "THIMBLE_CONF": "device:cpu"},
     "THIMBLE_CONF", "wrong", "contradict"),
    ({**TURNED_ON, "TF_FORCE_GPU_ALLOW_GROWTH": "true"}, "TF_FORCE_GPU_ALLOW_GROWTH", "ok", "true"),
    ({**TURNED_ON, "TF_PER_DEVICE_MEMORY_LIMIT_MB": "9"},
     "TF_PER_DEVICE_MEMORY_LIMIT_MB", "ok", "9"),
    ({**TURNED_ON, "TF_BFC_MEMORY_DUMP": "x"}, "TF_BFC_MEMORY_DUMP", "ignored", "snapshot"),
    ({**TURNED_ON, "XLA_PYTHON_CLIENT_PREALLOCATE": "true"},
     "XLA_PYTHON_CLIENT_PREALLOCATE", "ok", "at once"),
    ({**TURNED_ON, "XLA_PYTHON_CLIENT_MEM_FRACTION": ".5"},
     "XLA_PYTHON_CLIENT_MEM_FRACTION", "ok", "new name"),
    ({**TURNED_ON, "XLA_CLIENT_MEM_FRACTION": ".5", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".5"},
     "XLA_CLIENT_MEM_FRACTION", "wrong", "unset one"),
    ({**TURNED_ON, "XLA_CLIENT_MEM_FRACTION": ".5", "THIMBLE_CONF": "limit:1GiB"},
     "XLA_CLIENT_MEM_FRACTION", "wrong", "'limit'"),
    ({**TURNED_ON, "CUDA_VISIBLE_DEVICES": "-1"}, "CUDA_VISIBLE_DEVICES", "wrong", "hides every"),
    ({**TURNED_ON, "JAX_PLATFORMS": "cpu"}, "JAX_PLATFORMS", "wrong", "off the GPU"),
    ({**TURNED_ON, "JAX_PJRT_CLIENT_CREATE_OPTIONS": "use_tfrt_gpu_client:0;allocator:bfc"},
     "JAX_PJRT_CLIENT_CREATE_OPTIONS", "wrong", "allocator:bfc overrides"),
)


class Doctor(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup).install()
        cls.bare = installation.Environment(cls.addClassCleanup, frameworks=False).install()

    def doctor(self, status, site=None, **options):
        """Returns the results by name: (status, text), the last one of each."""
        ended = (site or self.site).run("thimble", "doctor", "--json", **options)
        self.assertEqual(ended.returncode, status, ended.stdout + ended.stderr)
        lines = [json.loads(line) for line in ended.stdout.splitlines()]
        return {line["check"]: (line["status"], line["text"]) for line in lines}

    def test_tensorflow_on_the_cpu(self):
        found = self.doctor(0, THIMBLE_CONF="device:cpu,limit:1GiB")
        self.assertEqual(found["TensorFlow on Thimble"],
                         ("ok", "Thimble serves the CPU device, limit 1.00 GiB"))
        self.assertEqual(found["THIMBLE_CONF"][0], "ok")
        self.assertEqual(found["CUDA driver"][0], "wrong")
        self.assertEqual(found["JAX on Thimble"][0], "wrong")

    def test_both_frameworks_on_a_gpu(self):
        found = self.doctor(0, simulator=("--memory", "2GiB"), TF_GPU_ALLOCATOR="thimble")
        self.assertEqual(found["TensorFlow on Thimble"][0], "ok")
        self.assertEqual(found["JAX on Thimble"][0], "off")
        self.assertIn("XLA_PYTHON_CLIENT_ALLOCATOR=thimble", found["JAX on Thimble"][1])
        self.assertEqual(found["CUDA driver"],
                         ("ok", "GPU 0 with 2.00 GiB, virtual memory management works"))
        for name in ("Python", "Thimble", "TensorFlow", "JAX"):
            self.assertEqual(found[name][0], "ok", found)

    def test_a_gpu_that_cannot_and_an_option_that_is_wrong(self):
        found = self.doctor(1, simulator=(), SIMGPU_CONF="vmm:off", THIMBLE_CONF="limti:1",
                            TF_GPU_ALLOCATOR="thimble", XLA_PYTHON_CLIENT_ALLOCATOR="thimble")
        self.assertEqual(found["CUDA driver"][0], "wrong")
        self.assertIn("virtual memory", found["CUDA driver"][1])
        self.assertIn("'limti'", found["THIMBLE_CONF"][1])
        self.assertIn("'limti'", found["TensorFlow on Thimble"][1])

    def test_without_frameworks(self):
        found = self.doctor(1, site=self.bare)
        self.assertEqual(found["TensorFlow"], ("absent", "TensorFlow is not installed"))
        self.assertEqual(found["JAX"], ("absent", "JAX is not installed"))

    def test_people_get_one_line_each(self):
        ended = self.bare.run("thimble", "doctor")
        self.assertEqual(ended.returncode, 1)
        for line in ended.stdout.splitlines():
            self.assertRegex(line, r"^(ok|off|absent|ignored|wrong) +\w[\w ]*: .+")
        self.assertEqual(self.bare.run("thimble", "doctor", "--jsno").returncode, 2)

    def test_an_installation_that_is_not_complete_or_not_alone(self):
        site = installation.Environment(self.addCleanup, frameworks=False).install()
        other = site.folder / "other"
        other.mkdir()
        shutil.copy(site.site / "thimble_boot.py", other)
        found = self.doctor(1, site=site, PYTHONPATH=str(other))
        self.assertEqual(found["Thimble"], (
            "wrong", f"installed more than once: remove {other}/thimble_boot.py"))
        (site.site / "thimble_gpu/lib/libthimble_xla.so").unlink()
        found = self.doctor(1, site=site)
        self.assertIn("libthimble_xla.so missing", found["Thimble"][1])
        (site.site / "thimble_gpu/lib/libthimble.so").unlink()
        found = self.doctor(1, site=site, THIMBLE_CONF="limit:1GiB")
        self.assertIn("libthimble.so, ", found["Thimble"][1])
        self.assertIn("libthimble.so", found["THIMBLE_CONF"][1])

    def test_every_variable_is_judged(self):
        ended = self.bare.python("""
            import json, sys
            from thimble_gpu import variables
            for environment in json.load(sys.stdin):
                print(json.dumps(list(variables.check(environment))))
        """, stdin=json.dumps([case[0] for case in VARIABLES]))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        for (environment, name, status, part), line in zip(VARIABLES, ended.stdout.splitlines()):
            found = [what for *about, what in json.loads(line) if about == [name, status]]
            self.assertTrue(any(part in what for what in found), f"{environment}: {line}")


if __name__ == "__main__":
    unittest.main()
