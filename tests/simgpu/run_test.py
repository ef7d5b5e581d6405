"""The launcher: what it passes on, what it refuses, and how it reports illegal calls."""

import os
import subprocess
import sys
import tempfile
import unittest

RUN = "tests/simgpu/run"

ILLEGAL = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
assert driver.cuInit(0) == 0
driver.cuMemRelease(ctypes.c_ulonglong(5))
"""


def run(*arguments, **variables):
    environment = dict(os.environ, SIMGPU_PYTHON=sys.executable, **variables)
    return subprocess.run([RUN, *arguments], env=environment, capture_output=True, text=True,
                          check=False)


class RunTest(unittest.TestCase):

    def test_status_and_output_are_the_commands(self):
        done = run("--gpus", "2", "--", "bash", "-c", "echo $SIMGPU_CONF; exit 7")
        self.assertEqual(done.returncode, 7)
        self.assertIn("gpus:2", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_python_is_the_projects(self):
        done = run("--", "python", "-c", "import sys; print(sys.prefix)")
        self.assertEqual(done.stdout.strip(), sys.prefix)

    def test_bad_options_are_refused_before_anything_starts(self):
        for arguments, words in [
            (["--gpus", "x", "--", "echo", "started"], "gpus: 'x' is not a number"),
            (["--memory", "1GB", "--", "echo", "started"], "memory: '1GB' is not a size"),
            (["--fault", "cuInit", "--", "echo", "started"], "fault: 'cuInit' is not NAME@K"),
            (["--clock", "a1000", "--", "echo", "started"], "clock: 'a1000' is not off, a100"),
            (["--colour", "--", "echo", "started"], "unknown option '--colour'"),
            (["--gpus"], "--gpus needs a value"),
            ([], "usage:"),
        ]:
            with self.subTest(arguments=arguments):
                done = run(*arguments)
                self.assertEqual(done.returncode, 2)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_variable_and_options_must_not_contradict(self):
        done = run("--gpus", "2", "--", "true", SIMGPU_CONF="gpus:1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'gpus' is given twice", done.stderr)

    def test_illegal_calls_are_shown_and_fail_the_run(self):
        done = run("--", "python", "-c", ILLEGAL)
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 illegal calls", done.stderr)
        self.assertIn("cuMemRelease: handle 0x5 is not alive", done.stderr)
        self.assertEqual(run("--allow-illegal", "--", "python", "-c", ILLEGAL).returncode, 0)
        failed = run("--", "python", "-c", ILLEGAL + "raise SystemExit(3)")
        self.assertEqual(failed.returncode, 3)

    def test_the_log_has_the_calls(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "log")
            run("--log", path, "--", "python", "-c", ILLEGAL)
            with open(path, encoding="utf-8") as log:
                text = log.read()
        self.assertIn("cuInit flags=0", text)
        self.assertIn("cuMemRelease handle=5 = CUDA_ERROR_INVALID_VALUE", text)

    def test_another_sitecustomize_still_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as file:
                file.write("print('mine')")
            show = "import os; print(os.path.exists('/dev/nvidiactl'))"
            done = run("--", "python", "-c", show, PYTHONPATH=folder)
        self.assertEqual(done.stdout.split(), ["mine", "True"])


if __name__ == "__main__":
    unittest.main()
