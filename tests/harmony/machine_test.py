"""The topology of a machine: from Linux' PCI tree and the driver to the planner's file."""

import json
import sys
import tempfile
import unittest
import unittest.mock

from tests.harmony import machines
from tests.harmony import profile_files
from tests.wheel import installation

READ = """\
import sys
from thimble_gpu.harmony import gpus, machine, pci
print(machine.topology(gpus.Gpus(), pci.Tree(sys.argv[1])), end="")
"""


class Machine(profile_files.ProfileFiles):

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup, frameworks=False).install()
        sys.path.append(str(cls.site.site))
        # What is installed, not what is in the tree.
        from thimble_gpu.harmony import errors, machine, pci  # pylint: disable=import-error
        cls.errors, cls.machine, cls.pci = errors, machine, pci

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.sysfs = machines.Sysfs(folder.name)
        state = unittest.mock.patch.dict("os.environ", XDG_STATE_HOME=folder.name)
        state.start()  # no rates that `thimble selftest` measured on this machine
        self.addCleanup(state.stop)

    def read(self, *gpus, numbers=None, **about):
        """The lines, without comments."""
        tree = self.pci.Tree(str(self.sysfs.root))
        text = self.machine.topology(machines.FakeGpus(*gpus, **about), tree, numbers)
        self.check_is_planned_for(text, len(numbers or gpus))
        lines = [line.partition("#")[0].strip() for line in text.splitlines()]
        return [line for line in lines if line]

    def check_is_planned_for(self, text, gpus):
        ended = self.site.run("thimble", "harmony", self.profile, "--memory", "1GiB", "--batch",
                              "8", "--seconds", "0.1", "--json", "--topology",
                              self.write("topology", text + self.machine.host_memory()))
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), text)
        self.assertGreater(json.loads(ended.stdout)["seconds"], 0)
        self.assertEqual(text.count("\ngpu "), gpus)

    def why_not(self, *gpus, **about):
        with self.assertRaises(self.errors.HarmonyError) as raised:
            self.read(*gpus, **about)
        return str(raised.exception)

    def two_behind_a_switch(self, **uplink):
        port = self.sysfs.port("pci0000:3a", "0000:3a:00.0", **uplink)
        above = self.sysfs.add(*port, "0000:3b:00.0", **uplink)
        for number in (0, 1):
            down = self.sysfs.add(*above, f"0000:3c:0{number}.0")
            self.sysfs.add(*down, f"0000:3{'de'[number]}:00.0")
        return "0000:3d:00.0", "0000:3e:00.0"

    def on_ports_of_their_own(self, **link):
        for number in (0, 1):
            port = self.sysfs.port("pci0000:00", f"0000:00:0{number + 1}.0", **link)
            self.sysfs.add(*port, f"0000:0{number + 1}:00.0", **link)
        return "0000:01:00.0", "0000:02:00.0"

    def test_two_gpus_share_the_uplink_of_their_switch(self):
        self.assertEqual(self.read(*self.two_behind_a_switch()), [
            "switch 0000:3b:00.0 uplink 11.500GiB",
            "gpu 0 switch 0000:3b:00.0 link 11.500GiB",
            "gpu 1 switch 0000:3b:00.0 link 11.500GiB",
            "p2p 8.200GiB"])

    def test_an_uplink_may_be_narrower_than_the_links(self):
        self.assertEqual(self.read(*self.two_behind_a_switch(width="8"))[:2], [
            "switch 0000:3b:00.0 uplink 5.750GiB", "gpu 0 switch 0000:3b:00.0 link 11.500GiB"])

    def test_a_gpu_on_a_port_of_the_host_shares_nothing(self):
        self.assertEqual(self.read(*self.on_ports_of_their_own(speed="16.0 GT/s PCIe")), [
            "switch 0000:01:00.0 uplink 23.000GiB",
            "switch 0000:02:00.0 uplink 23.000GiB",
            "gpu 0 switch 0000:01:00.0",
            "gpu 1 switch 0000:02:00.0",
            "p2p 16.400GiB"])

    def test_eight_gpus_behind_four_switches(self):
        """Each pair of switches is under another switch."""
        names = []
        for side in range(2):
            port = self.sysfs.port(f"pci0000:{side}0", f"0000:{side}0:00.0")
            for half, down in enumerate(self.sysfs.switch(
                    port, f"0000:{side}1:00.0", f"0000:{side}2:00.0", f"0000:{side}2:01.0")):
                bus = 3 + 4 * half
                for number, end in enumerate(self.sysfs.switch(
                        down, f"0000:{side}{bus}:00.0", f"0000:{side}{bus + 1:x}:00.0",
                        f"0000:{side}{bus + 1:x}:01.0")):
                    names.append(f"0000:{side}{bus + 2 + number:x}:00.0")
                    self.sysfs.add(*end, names[-1])
        lines = self.read(*names)
        self.assertEqual(lines[:3], ["switch 0000:01:00.0 uplink 11.500GiB",
                                     "switch 0000:03:00.0 uplink 11.500GiB under 0000:01:00.0",
                                     "switch 0000:07:00.0 uplink 11.500GiB under 0000:01:00.0"])
        self.assertEqual([line.split()[3] for line in lines if line.startswith("gpu ")],
                         ["0000:03:00.0"] * 2 + ["0000:07:00.0"] * 2 +
                         ["0000:13:00.0"] * 2 + ["0000:17:00.0"] * 2)

    def test_a_pair_with_nvlinks(self):
        lines = self.read(*self.two_behind_a_switch(), nvlinks={(0, 1): 50_000_000_000})
        self.assertEqual(lines[3:], ["nvlink 0 1 46.566GiB"])  # and nothing goes over PCI

    def test_gpus_are_those_asked_for_in_their_order(self):
        port = self.sysfs.port("pci0000:50", "0000:50:00.0")
        self.sysfs.add(*port, "0000:51:00.0", width="8")
        lines = self.read(*self.on_ports_of_their_own(), "0000:51:00.0", numbers=[2, 1],
                          nvlinks={(0, 1): 1 << 30, (1, 2): 4 << 30})
        self.assertEqual(lines, ["switch 0000:51:00.0 uplink 5.750GiB",
                                 "switch 0000:02:00.0 uplink 11.500GiB",
                                 "gpu 0 switch 0000:51:00.0", "gpu 1 switch 0000:02:00.0",
                                 "nvlink 0 1 4.000GiB"])

    def test_gpus_that_do_not_reach_each_other_copy_twice(self):
        lines = self.read(*self.on_ports_of_their_own(), apart=[(0, 1)])
        self.assertEqual(lines[-1], "p2p 4.100GiB")

    def test_a_gpu_at_rest_is_as_fast_as_it_can_be(self):
        """It lowers its speed, not its width, and is no faster than the slot it is in."""
        port = self.sysfs.port("pci0000:00", "0000:00:01.0", speed="8.0 GT/s PCIe")
        self.sysfs.add(*port, "0000:01:00.0", speed="2.5 GT/s PCIe", most="16.0 GT/s PCIe")
        self.assertEqual(self.read("0000:01:00.0"),
                         ["switch 0000:01:00.0 uplink 11.500GiB", "gpu 0 switch 0000:01:00.0"])

    def test_old_links_have_more_overhead(self):
        port = self.sysfs.port("pci0000:00", "0000:00:01.0", speed="5 GT/s")  # as old kernels write
        self.sysfs.add(*port, "0000:01:00.0", speed="5 GT/s")
        self.assertEqual(self.read("0000:01:00.0")[0], "switch 0000:01:00.0 uplink 5.840GiB")

    def test_a_virtual_machine_shows_the_link_without_a_port(self):
        self.sysfs.port("pci0000:00", "0000:00:05.0", node="-1")
        self.assertEqual(self.read("0000:00:05.0"),
                         ["switch 0000:00:05.0 uplink 11.500GiB", "gpu 0 switch 0000:00:05.0"])

    def test_what_cannot_be_read_is_named(self):
        self.assertIn("bus/pci/devices/0000:01:00.0 does not exist", self.why_not("0000:01:00.0"))
        port = self.sysfs.port("pci0000:00", "0000:00:01.0", speed=None)
        self.sysfs.add(*port, "0000:01:00.0", speed="Unknown")
        self.sysfs.add(*port, "0000:01:01.0", width="0")
        self.sysfs.add(*port, "0000:01:02.0", width=None)
        bridge = self.sysfs.add(*port, "0000:01:03.0")
        self.sysfs.add(*bridge, "0000:02:00.0")
        for address, part in (("0000:01:00.0", "max_link_speed says 'Unknown'"),
                              ("0000:01:01.0", "current_link_width says '0'"),
                              ("0000:01:02.0", "current_link_width says None"),
                              ("0000:02:00.0", "a bridge that is not PCI Express")):
            self.assertIn(part, self.why_not(address))
        self.assertIn("0 GPUs are visible", self.why_not())
        self.assertIn("9 GPUs are visible", self.why_not(*["0000:01:01.0"] * 9))

    def simulate(self, *command, gpus=2, **variables):
        return self.site.run(*command, simulator=("--gpus", str(gpus)), **variables)

    def on_the_simulated_gpus(self, **variables):
        for number in (0, 1):
            port = self.sysfs.port("pci0000:00", f"0000:00:0{number + 1}.0")
            self.sysfs.add(*port, f"0000:0{number + 4}:00.0")
        return self.simulate("python", "-c", READ, str(self.sysfs.root), **variables)

    def test_the_driver_is_asked(self):
        ended = self.on_the_simulated_gpus()
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertIn("gpu 1 switch 0000:05:00.0  # NVIDIA A100-SXM4-80GB, 80.00 GiB, NUMA node 0",
                      ended.stdout)
        self.assertIn("p2p 8.200GiB", ended.stdout)
        self.assertNotIn("nvlink", ended.stdout)
        self.check_is_planned_for(ended.stdout, 2)

    def test_nvml_tells_the_nvlinks(self):
        ended = self.on_the_simulated_gpus(SIMGPU_CONF="nvlinks:4")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertIn("nvlink 0 1 93.132GiB", ended.stdout)
        self.assertNotIn("p2p", ended.stdout)

    def test_peers_that_are_off_and_a_driver_that_fails(self):
        self.assertIn("p2p 4.100GiB", self.on_the_simulated_gpus(SIMGPU_CONF="peers:off").stdout)
        ended = self.simulate("thimble", "topology", SIMGPU_CONF="fault:cuDeviceGetPCIBusId@1")
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn("cuDeviceGetPCIBusId of the CUDA driver failed", ended.stderr)

    def test_the_commands_say_what_is_missing(self):
        for command in (("thimble", "topology"),
                        ("thimble", "harmony", self.profile, *self.sizes, "--topology", "machine")):
            ended = self.site.run(*command, LD_LIBRARY_PATH="")
            self.assertEqual((ended.returncode, ended.stdout), (1, ""))
            self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)
            self.assertIn("there is no CUDA driver", ended.stderr)
            self.assertIn("Write what you know into a file", ended.stderr)
        ended = self.simulate("thimble", "topology")  # whose addresses Linux does not know
        self.assertIn("0000:04:00.0 does not exist", ended.stderr)


if __name__ == "__main__":
    unittest.main()
