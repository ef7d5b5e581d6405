"""`thimble run` does not change the program, and its summary is true or says what it does not
know."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import textwrap
import unittest

from tests.wheel import installation
from tests.wheel.installation import PROGRAM

# 16 MiB in blocks. BFC can reuse the even ones, but not as one block.
SCATTERED = PROGRAM + textwrap.dedent("""
    blocks = [allocate(2 << 20) for _ in range(8)]
    for even in blocks[::2]:
        free(even)
    allocate(8 << 20)
""")
# Steps of twenty ops that use one of two blocks of 8 MiB; then a third block comes.
IDLE = PROGRAM + textwrap.dedent("""
    import time

    def use(block, op, step):
        blocks = (ctypes.c_void_p * 1)(block.value)
        core.check(core.pin(arena, blocks, ctypes.c_size_t(1), ctypes.c_uint64(op),
                            ctypes.c_uint64(step), 0))
        time.sleep(0.001)
        core.check(core.unpin(arena, blocks, ctypes.c_size_t(1), None, ctypes.c_size_t(0),
                              ctypes.c_uint64(0), 0))

    zero = ctypes.c_uint64(0)
    held = [allocate(8 << 20) for _ in range(2)]
    for step in range(1, 5):
        core.check(core.allocate_in_step(arena, ctypes.c_size_t(1 << 20), zero, zero,
                                         ctypes.c_uint64(7), ctypes.c_uint64(step), 0,
                                         ctypes.byref(block)))
        free(ctypes.c_void_p(block.value))
        for op in range(20):
            use(held[op % 2], op + 1, step)
    allocate(8 << 20)
""")
# In every step, halves of chunks that stay and that go in turn, then a block as large as those that
# went. At the end a block comes that stays: with the halves packed, there is room for it.
INTERLEAVED = PROGRAM + textwrap.dedent("""
    import time

    def take(bytes, key, step):
        core.check(core.allocate_in_step(arena, ctypes.c_size_t(bytes), zero, zero,
                                         ctypes.c_uint64(key), ctypes.c_uint64(step), 0,
                                         ctypes.byref(block)))
        return ctypes.c_void_p(block.value)

    zero = ctypes.c_uint64(0)
    for step in range(1, 41):
        stay, go = [], []
        for key in range(1, 33):
            stay.append(take(1 << 19, key, step))
            go.append(take(1 << 19, 100 + key, step))
        for old in go:
            free(old)
        stay.append(take(16 << 20, 500, step))
        if step == 39:
            take(24 << 20, 1000, step)
        for old in stay:
            free(old)
        time.sleep(0.01)  # for the thread that plans
""")
KERAS = """
    import keras, numpy as np
    model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(2048), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(np.ones((64, 32)), np.ones((64, 1)), verbose=0)
"""
# Activations of 32 MiB, weights of 2 MiB; 43 MiB at the peak.
KERAS_DEEP = """
    import keras, numpy as np
    layers = [keras.layers.Dense(256, "relu") for _ in range(8)]
    model = keras.Sequential([keras.Input((256,)), *layers, keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(np.ones((4096, 256)), np.ones((4096, 1)), batch_size=4096, epochs=3, verbose=0)
"""
JAX = """
    import jax.numpy as jnp
    kept = jnp.ones((64, 256, 1024)).block_until_ready()
"""


class Run(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup).install()
        cls.bare = installation.Environment(cls.addClassCleanup, frameworks=False).install()

    def thimble(self, program, *options, site=None, **more):
        return (site or self.site).run("thimble", "run", *options, "--", "python", "-c",
                                       textwrap.dedent(program), **more)

    def assert_figures(self, ended, place, lines=2):
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(len(ended.said), lines, ended.stderr)
        self.assertRegex(ended.said[0], rf"^thimble: {place}: peak [\d.]+ \w+ in use, .* reserved.*"
                         r", \d+ blocks stitched, \d+ allocations$")

    def test_keras_on_the_cpu(self):
        ended = self.thimble(KERAS, "--conf", "device:cpu", "--limit", "1GiB")
        self.assert_figures(ended, "CPU")
        self.assertRegex(ended.said[1], r"\(BFC\) would have needed [\d.]+ MiB")

    def test_jax_on_a_gpu(self):
        ended = self.thimble(JAX, simulator=("--memory", "1GiB"))
        self.assert_figures(ended, "GPU 0")
        self.assertIn("peak 64.00 MiB in use", ended.said[0])
        self.assertRegex(ended.said[1], r"\(BFC\) would have needed \d+\.\d\d MiB")

    def test_what_bfc_would_have_needed_is_what_it_needs(self):
        with tempfile.TemporaryDirectory() as folder:
            ended = self.thimble(SCATTERED, "--conf", "device:cpu,memory:64MiB", TMPDIR=folder)
            self.assert_figures(ended, "CPU")
            self.assertEqual(os.listdir(folder), [], "a log was left behind")
        self.assertIn("peak 16.00 MiB in use, 16.00 MiB reserved, fragmentation 0.0 %, 1 blocks",
                      ended.said[0])
        self.assertIn("would have needed 24.00 MiB, 50.0 % more than was reserved", ended.said[1])

    def test_without_tensorflow_it_says_so(self):
        ended = self.thimble(SCATTERED, "--conf", "device:cpu,memory:64MiB", site=self.bare)
        self.assert_figures(ended, "CPU")
        self.assertIn("would have needed: TensorFlow is not installed", ended.said[1])

    def test_a_log_that_was_cut_is_said_to_be(self):
        ended = self.thimble(SCATTERED + "for _ in range(5000): allocate(256)\nos._exit(0)",
                             "--conf", "device:cpu,memory:64MiB", site=self.bare)
        self.assert_figures(ended, "CPU", lines=3)
        self.assertIn("crashed or was killed", ended.said[1])
        bounded = self.bounded(9, SCATTERED, "device:cpu,memory:64MiB")
        self.assert_figures(bounded, "CPU", lines=3)
        self.assertIn("incomplete: the first 9 events", bounded.said[1])

    def test_every_process_and_device_is_told(self):
        ended = self.thimble(PROGRAM + textwrap.dedent("""
            allocate(4 << 20)
            if len(sys.argv) < 2:
                import subprocess
                program = open("/proc/self/cmdline").read().split("\\0")[2]
                for _ in range(2):
                    subprocess.run([sys.executable, "-c", program, "child"], check=True)
        """), "--conf", "device:cpu,memory:64MiB", site=self.bare)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        figures = [line for line in ended.said if "peak 4.00 MiB" in line]
        processes = {line.partition(" of process ")[2].split(":")[0] for line in figures}
        self.assertEqual(len(processes), 3, ended.said)

    # Settings that are said to fit are run, and fit.
    def check_failure(self, program, conf, says, fits=(), fits_not=()):
        failed = self.thimble(program, "--conf", conf, site=self.bare)
        self.assertNotEqual(failed.returncode, 0)
        notes = [line for line in failed.said if "fit" in line]
        self.assertIn(says, notes[0], failed.stderr)
        lines = {"it fits with ": fits, "it does not fit with ": fits_not}
        for start, settings in lines.items():
            line = [note for note in notes if start in note]
            self.assertEqual(bool(line), bool(settings), failed.stderr)
            for setting in settings:
                self.assertIn(setting, line[0], failed.stderr)
        for setting in fits:
            given = ",".join(part for part in conf.split(",")
                             if part.split(":")[0] != setting.split(":")[0])
            ended = self.thimble(program, "--conf", f"{given},{setting}", site=self.bare)
            self.assertEqual(ended.returncode, 0, f"{setting}: {ended.stderr}")

    def test_an_out_of_memory_says_which_settings_fit(self):
        self.check_failure(SCATTERED, "device:cpu,memory:64MiB,limit:16MiB,stitch:off",
                           "a request of 8.00 MiB did not fit (fragmentation): 8.00 MiB were in "
                           "use, 8.00 MiB more were needed",
                           fits=("limit:25165824", "stitch:on"), fits_not=("plan:auto",))

    def test_keras_hears_that_it_fits_with_swapping_and_does(self):
        conf = "device:cpu,chunk:64KiB,retry_ms:100,limit:28MiB"
        failed = self.thimble(KERAS_DEEP, "--conf", conf, TF_ENABLE_ONEDNN_OPTS="0",
                              TF_CPP_MIN_LOG_LEVEL="0")
        self.assertEqual(failed.returncode, 1, failed.stderr)
        fits = r"limit:\d+, or swap:auto \([\d.]+ MiB leave the device, \d\.\d ms at 12\.3 GiB/s\)\n"
        self.assertRegex(failed.stderr, r"\n  fits with  " + fits)
        self.assertRegex("\n".join(failed.said), r"did not fit \(limit\): .*\nthimble:   it fits "
                         f"with {fits}thimble:   it does not fit with plan:auto")
        swapped = self.thimble(KERAS_DEEP, "--conf", conf + ",swap:auto", TF_ENABLE_ONEDNN_OPTS="0")
        self.assertEqual(swapped.returncode, 0, swapped.stderr)
        self.assertIn("swapped: ", "".join(swapped.said))

    def test_an_out_of_memory_says_what_swapping_would_cost(self):
        conf = "device:cpu,memory:64MiB,limit:20MiB,chunk:1MiB"
        failed = self.thimble(IDLE, "--conf", conf, site=self.bare)
        found = re.search(r"swap:auto \(4\.00 MiB leave the device, 0\.3 ms at 12\.3 GiB/s; steps "
                          r"take an estimated ([\d.]+) % longer if computation hides none of "
                          r"it\)",
                          "\n".join(failed.said))
        self.assertTrue(found, failed.stderr)
        # 0.66 ms of copies in a step of at least 20 ms.
        self.assertTrue(0 < float(found[1]) < 3.4, found[1])
        ended = self.thimble(IDLE, "--conf", conf + ",swap:auto", site=self.bare)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("swapped: ", "".join(ended.said))

    def test_an_out_of_memory_says_when_a_plan_fits(self):
        self.check_failure(INTERLEAVED, "device:cpu,memory:64MiB,limit:64MiB,chunk:1MiB",
                           "a request of 24.00 MiB did not fit", fits=("plan:auto",),
                           fits_not=("swap:auto",))

    def bounded(self, events, program, conf):
        """`thimble run` with a bound on recorded events."""
        return self.bare.run(
            "python", "-c", f"import sys; from thimble_gpu import cli; from thimble_gpu.commands "
            f"import run; run.MOST_EVENTS = {events}; sys.exit(cli.main(sys.argv[1:]))", "run", "--conf", conf, "--", "python",
            "-c", program)

    def test_an_out_of_memory_that_is_not_recorded_is_said_to_be(self):
        ended = self.bounded(4000, PROGRAM + textwrap.dedent("""
            for _ in range(5000):
                allocate(256)
            allocate(16 << 20)
        """), "device:cpu,memory:64MiB,limit:16MiB")
        said = "\n".join(ended.said)
        self.assertIn("did not fit (limit)", said)
        self.assertIn("it fits with limit:18087936", said)
        self.assertIn("other settings cannot be tested", said)
        self.assertNotIn("plan:auto", said)

    def test_a_program_that_does_not_use_it_hears_of_the_doctor(self):
        ended = self.thimble("print('done')", site=self.bare)
        self.assertEqual((ended.returncode, ended.stdout), (0, "done\n"), ended.stderr)
        self.assertEqual(len(ended.said), 1)
        self.assertIn("thimble doctor", ended.said[0])

    def test_the_variables_are_those_the_options_need(self):
        program = "import os; print(*(os.environ.get(name) for name in ('TF_GPU_ALLOCATOR', "\
                  "'XLA_PYTHON_CLIENT_ALLOCATOR')))"
        for conf, expected in (("", "thimble thimble"), ("device:cpu", "None None"),
                               ("front:bfc", "thimble None"),
                               ("cumemalloc:driver", "None thimble")):
            ended = self.thimble(program, "--conf", conf, site=self.bare)
            self.assertEqual(ended.stdout.strip(), expected, ended.stderr)

    def test_the_end_of_the_program_is_the_end_of_the_command(self):
        self.assertEqual(self.thimble("raise SystemExit(7)", site=self.bare).returncode, 7)
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGABRT):
            ended = self.thimble(f"import os; os.kill(os.getpid(), {int(number)})", site=self.bare)
            self.assertEqual(ended.returncode, -number, ended.stderr)
            self.assertEqual(ended.said[0], f"thimble: the program was killed by {number.name}")
        shell = self.bare.run("thimble", "run", "--", "sh", "-c", "exit 127")
        self.assertEqual((shell.returncode, len(shell.said)), (127, 1), "it ran, and took nothing")

    def test_signals_reach_the_program(self):
        program = ("import signal, sys, time\n"
                   "for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):\n"
                   "    signal.signal(number, lambda number, _: sys.exit(40 + number))\n"
                   "print('ready', flush=True)\ntime.sleep(60)\n")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            command = subprocess.Popen(["thimble", "run", "--", "python", "-c", program], text=True,
                                       env=self.bare.variables({}), stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL,
                                       executable=str(self.bare.folder / "bin" / "thimble"))
            self.assertEqual(command.stdout.readline(), "ready\n")
            command.send_signal(number)
            self.assertEqual(command.wait(timeout=60), 40 + number)
            command.stdout.close()

    def test_bad_usage_is_refused_before_anything_runs(self):
        for arguments, part in (
            ((), "no command"),
            (("--conf", "limti:1GiB", "--", "true"), "'limti'"),
            (("--limit", "much", "--", "true"), "'much'"),
            (("--conf", "limit:1GiB", "--limit", "2GiB", "--", "true"), "'limit' is given twice"),
            (("--conf", "log:/tmp/x", "--", "true"), "leave it out"),
            (("--conf", "front:bfc,cumemalloc:driver", "--", "true"), "contradict"),
        ):
            ended = self.bare.run("thimble", "run", *arguments)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn(part, ended.stderr)
        self.assertEqual(self.bare.run("thimble").returncode, 2)
        missing = self.bare.run("thimble", "run", "--", "no-such-command")
        self.assertEqual((missing.returncode, len(missing.said)), (127, 1), missing.stderr)
        plain = pathlib.Path(self.bare.folder, "plain")
        plain.write_text("not a program")
        self.assertEqual(self.bare.run("thimble", "run", "--", str(plain)).returncode, 126)


if __name__ == "__main__":
    unittest.main()
