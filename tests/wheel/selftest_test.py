"""`thimble selftest` on the simulated GPU: it passes in every option, finds drivers with defects,
and what it writes serves the other commands. Its kernels go through the toolkit's ptxas."""

import json
import pathlib
import shutil
import subprocess
import sysconfig
import tempfile
import unittest

from tests.harmony import machines
from tests.swap import trace_files
from tests.wheel import installation
from tests.wheel import ptx

# (defect of the simulated driver, the check that must find it)
DEFECTS = (
    ("alias", "R2 one chunk at two addresses is the same memory"),
    ("onto", "R2 mapping onto a mapping is refused"),
    ("part", "R3 unmapping a part is refused"),
    ("open", "R4 a mapping has no access at first"),
    ("open", "R4 memory without access is out of reach"),
    ("first", "R4 access is given per range"),
    ("early", "R7 a destroyed chunk lives until its last unmap"),
    ("loose", "R6 addresses stay reserved"),
    ("device", "chunks on a host node, by copies"),
)
# (options of the simulated GPU, the check that is lost, a part of what it says)
OPTIONS = (
    ("host_chunks:on", None, ""),
    ("vmm:off", "virtual memory management", "Thimble cannot serve this GPU"),
    ("pools:off", "memory pools", "cuda_malloc_async"),
    ("descriptors:off", "R8 an import counts as a reference", "cannot share chunks"),
    ("numa_chunks:off", "chunks on a host node, by copies", "out of reach of kernels"),
    ("numa_chunks:off,host_chunks:on", "chunks on a host node, by copies", "nothing is lost"),
    ("granularity:64KiB", "chunks on the host, by kernels", "nothing is lost"),
)
KERNELS = """
from thimble_gpu.selftest import kernels
print(kernels.PTX, end="")
"""
PATTERN = """
import sys
from thimble_gpu.selftest import kernels
print(kernels.pattern(50, 12345).hex(), end="")
"""


class SelfTest(trace_files.TraceFiles):

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup, frameworks=False).install()

    def setUp(self):
        super().setUp()
        self.machine = self.folder / "machine.json"

    def run_it(self, status, simulator=("--memory", "1GiB"), **variables):
        """Returns verdicts by check, and the record."""
        ended = self.site.run("thimble", "selftest", "--out", str(self.machine),
                              simulator=simulator, **variables)
        self.assertEqual(ended.returncode, status, ended.stdout + ended.stderr)
        record = json.loads(self.machine.read_text())
        found = {line["check"]: (line["status"], line["text"])
                 for gpu in record["gpus"] for line in gpu["verdicts"]}
        for check, (verdict, what) in found.items():
            self.assertIn(f"{verdict:9}{check}: {what}\n", ended.stdout)
        self.assertIn("This GPU is simulated: nothing was computed", ended.stdout)
        return found, record

    def test_every_option_passes_and_says_what_is_lost(self):
        for options, check, part in OPTIONS:
            with self.subTest(options):
                found, _ = self.run_it(0, SIMGPU_CONF=options)  # 0: no illegal call, too
                lost = {name: what for name, (status, what) in found.items() if status == "lost"}
                if check is None:
                    self.assertEqual(lost, {})
                else:
                    self.assertIn(part, lost[check])

    def test_what_kernels_should_have_done_is_unproven(self):
        found, record = self.run_it(0)
        self.assertTrue(record["simulated"])
        for check in ("stitched memory, by kernels", "chunks on a host node, by kernels", "events",
                      "copies beside kernels", "mapping beside kernels"):
            self.assertEqual(found[check][0], "unproven")
        statuses = {status for status, _ in found.values()}
        self.assertEqual(statuses, {"ok", "lost", "unproven"})

    def test_every_defect_of_a_driver_is_found(self):
        for defect, check in DEFECTS:
            with self.subTest(f"{defect}: {check}"):
                found, _ = self.run_it(1, simulator=("--memory", "1GiB", "--allow-illegal"),
                                       SIMGPU_CONF=f"defects:{defect}")
                self.assertEqual(found[check][0], "broken", found[check])

    def test_a_driver_that_ends_or_refuses_is_a_finding(self):
        found, record = self.run_it(1, SIMGPU_CONF="fault:cuMemSetAccess@9+")
        broken = [text for status, text in found.values() if status == "broken"]
        self.assertIn("cuMemSetAccess: ", broken[0])
        self.assertNotIn("bus", record["gpus"][0], "prices were not measured")

    def test_host_chunks_that_are_refused_are_lost(self):
        """As in a container that may not bind memory to a node."""
        log = self.folder / "calls"
        self.run_it(0, SIMGPU_CONF=f"log:{log}")
        calls = [line.split() for line in log.read_text().splitlines()]
        first = next(call for call in calls if call[1] == "cuMemCreate" and "node=0" in call)
        same = [call for call in calls if call[:2] == first[:2]]  # of that process
        found, _ = self.run_it(0, SIMGPU_CONF=f"fault:cuMemCreate@{same.index(first) + 1}="
                               "CUDA_ERROR_NOT_PERMITTED")
        status, what = found["chunks on a host node, by copies"]
        self.assertEqual(status, "lost")
        self.assertIn("though the device has them: cuMemCreate: CUDA_ERROR_NOT_PERMITTED", what)

    def test_all_gpus_are_tested(self):
        _, record = self.run_it(0, simulator=("--gpus", "2", "--memory", "1GiB"))
        self.assertEqual([gpu["number"] for gpu in record["gpus"]], [0, 1])
        for gpu in record["gpus"]:
            for call in ("cuMemCreate", "cuMemMap", "cuMemCreate on the host", "cuLaunchKernel"):
                self.assertGreater(gpu["calls_us"][call]["median"], 0, call)
                self.assertGreaterEqual(gpu["calls_us"][call]["most"],
                                        gpu["calls_us"][call]["median"])
            for way in ("in", "out", "pageable_in", "pageable_out", "both", "promote", "demote"):
                self.assertGreater(gpu["bus"][f"{way}_bytes_per_second"], 0, way)

    def test_machines_that_cannot_be_tested_get_one_line(self):
        for simulator, part in ((None, "there is no CUDA driver"),
                                (("--gpus", "0"), "finds no GPU"),
                                (("--memory", "256MiB"), "takes 512 MiB")):
            ended = self.site.run("thimble", "selftest", simulator=simulator)
            self.assertEqual(ended.returncode, 1)
            self.assertRegex(ended.stderr, rf"^thimble selftest: .*{part}.*\n$")

    def test_a_file_that_cannot_be_written_is_named_before_the_work(self):
        ended = self.site.run("thimble", "selftest", "--out", "/nowhere/machine.json",
                              simulator=())
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertIn("/nowhere/machine.json", ended.stderr)
        ended = self.site.run("thimble", "selftest", simulator=(), XDG_STATE_HOME="/dev/null")
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertIn("/dev/null/thimble", ended.stderr)

    def test_the_kernels_compile_for_every_supported_gpu(self):
        found = shutil.which("ptxas")
        wheels = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia"
        compilers = [found] if found else sorted(map(str, wheels.glob("*/bin/ptxas")))
        self.assertTrue(compilers, f"no ptxas on PATH or in {wheels}: pip has nvidia-cuda-nvcc")
        source = self.write("kernels.ptx", self.site.python(KERNELS).stdout)
        for architecture in ("sm_75", "sm_80", "sm_90", "sm_100"):
            ended = subprocess.run(
                [compilers[0], f"-arch={architecture}", source, "-o", f"{source}.cubin"],
                check=False, capture_output=True, text=True)
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)


class Kernels(unittest.TestCase):
    """They compute what the self-test expects of them; as no GPU is here, on the processor."""

    @classmethod
    def setUpClass(cls):
        site = installation.Environment(cls.addClassCleanup, frameworks=False).install()
        cls.text = site.python(KERNELS).stdout
        data = bytes.fromhex(site.python(PATTERN).stdout)
        cls.pattern = [int.from_bytes(data[at:at + 4], "little") for at in range(0, 200, 4)]

    def test_one_writes_the_pattern_and_another_counts_wrong_words(self):
        machine = ptx.Machine(self.text)
        base, wrong = 0x7f1200000000, 0x7f5500000000
        for blocks, threads in ((1, 1), (2, 3), (7, 16)):
            machine.memory = {wrong: 0}
            machine.launch("thimble_fill", blocks, threads, base, 50, 12345)
            self.assertEqual([machine.memory[base + 4 * i] for i in range(50)], self.pattern)
            self.assertEqual(len(machine.memory), 51, "and nothing else")
            machine.launch("thimble_check", blocks, threads, base, 50, 12345, wrong)
            self.assertEqual(machine.memory[wrong], 0)
            for word in (0, 17, 49):
                machine.memory[base + 4 * word] ^= 1
            machine.launch("thimble_check", blocks, threads, base, 50, 12345, wrong)
            self.assertEqual(machine.memory[wrong], 3)

    def test_one_waits_for_its_flag_or_for_the_end_of_its_time(self):
        flag = 0x7f0000001000
        times = iter(range(0, 10000, 10))
        machine = ptx.Machine(self.text, clock=lambda: next(times))
        machine.memory = {flag: 0}
        machine.launch("thimble_wait", 1, 1, flag, 500)
        self.assertEqual(next(times), 510)
        machine.memory = {flag: 1}
        machine.launch("thimble_wait", 1, 1, flag, 500)
        self.assertLess(next(times), 550)


class Prices(trace_files.TraceFiles):
    """Who reads machine.json."""

    def setUp(self):
        super().setUp()
        self.site = installation.Environment(self.addCleanup, frameworks=False).install()
        self.machine = self.site.folder / "state/thimble/machine.json"

    def measure(self, simulated=False, **bus):
        """Runs the self-test and writes other prices into its file, as those of a GPU."""
        ended = self.site.run("thimble", "selftest", simulator=("--memory", "1GiB"))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        record = json.loads(self.machine.read_text())
        record["simulated"] = simulated
        record["gpus"][0]["bus"].update(bus)
        self.machine.write_text(json.dumps(record))

    def swap(self, *arguments):
        ended = self.site.run("thimble", "swap", "--json", *arguments, self.trace)
        return json.loads(ended.stdout) if ended.returncode == 0 else ended

    def doctor(self):
        ended = self.site.run("thimble", "doctor", "--json")
        lines = [json.loads(line) for line in ended.stdout.splitlines()]
        return next((line["status"], line["text"]) for line in lines
                    if line["check"] == "Selftest")

    def test_swap_plans_with_the_measured_bus(self):
        self.assertEqual(self.swap()["bus_out"], 13200000000)
        refused = self.swap("--bus", "machine")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("run `thimble selftest` on this machine", refused.stderr)
        self.measure(out_bytes_per_second=21_500_000_000, in_bytes_per_second=22_000_000_000)
        for line in (self.swap(), self.swap("--bus", "machine")):
            self.assertEqual((line["bus_out"], line["bus_in"]), (21500000000, 22000000000))
        self.assertEqual(self.swap("--bus", "1/2")["bus_in"], 2000000000, "the user's word counts")
        self.measure(out_bytes_per_second=0)
        self.assertEqual(self.swap()["bus_out"], 13200000000)
        self.assertIn("out_bytes_per_second of GPU 0 is 0", self.swap("--bus", "machine").stderr)

    def test_latencies_count(self):
        self.measure(out_bytes_per_second=10**12, in_bytes_per_second=10**12,
                     out_latency_ns=40_000_000, in_latency_ns=40_000_000)
        self.assertGreater(self.swap("--limit", "20000000")["slowdown"], 35)

    def test_the_simulated_gpu_has_no_prices(self):
        self.measure(simulated=True, out_bytes_per_second=21_500_000_000)
        self.assertEqual(self.swap()["bus_out"], 13200000000)
        self.assertIn("simulated", self.swap("--bus", "machine").stderr)

    def test_topology_has_the_measured_rate_of_a_link(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        sysfs = machines.Sysfs(folder.name)
        port = sysfs.port("pci0000:00", "0000:00:01.0")
        sysfs.add(*port, "0000:04:00.0")
        read = ("from thimble_gpu.harmony import gpus, machine, pci\n"
                f"print(machine.topology(gpus.Gpus(), pci.Tree({str(sysfs.root)!r})))")
        computed = self.site.run("python", "-c", read, simulator=()).stdout
        self.assertIn("switch 0000:04:00.0 uplink 11.500GiB", computed)
        self.measure(out_bytes_per_second=10 << 30, in_bytes_per_second=9 << 30)
        measured = self.site.run("python", "-c", read, simulator=()).stdout
        self.assertIn("switch 0000:04:00.0 uplink 9.000GiB  # 8 GT/s x16, measured by thimble",
                      measured)

    def test_doctor_says_when_it_ran_and_with_which_result(self):
        self.assertEqual(self.doctor()[0], "absent")
        self.measure(simulated=True)
        status, what = self.doctor()
        self.assertEqual(status, "ok")
        self.assertRegex(what, r"^20\d\d-.*Z on NVIDIA A100.*, driver .*: 2 lost, \d+ ok, 5 "
                               r"unproven; on the simulated GPU")
        record = json.loads(self.machine.read_text())
        record["gpus"][0]["verdicts"][0]["status"] = "broken"
        self.machine.write_text(json.dumps(record))
        self.assertEqual(self.doctor()[0], "wrong")
        for text in ("{}", "[]", "", '{"format": 2}', '{"format": 1, "gpus": [3]}'):
            self.machine.write_text(text)
            status, what = self.doctor()
            self.assertEqual(status, "wrong", text)
            self.assertRegex(what, "machine.json .*`thimble selftest`", text)


if __name__ == "__main__":
    unittest.main()
