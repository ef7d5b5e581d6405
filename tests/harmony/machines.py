"""Simulated machines: PCI trees as Linux shows them, and their GPUs."""

import dataclasses
import os
import pathlib


class Sysfs:
    """A folder that looks like /sys."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder)
        self._entries = self.root / "bus" / "pci" / "devices"
        self._entries.mkdir(parents=True)

    def add(self, *way, speed="8.0 GT/s PCIe", most=None, width="16", node="0"):
        """A device by its path from the root down: "pci0000:3a", "0000:3a:00.0" and so on.

        `speed` is the one of now, `most` what it can do. What is None is not there.
        """
        folder = self.root.joinpath("devices", *way)
        folder.mkdir()
        os.symlink(os.path.relpath(folder, self._entries), self._entries / way[-1])
        for name, content in (("current_link_speed", speed), ("max_link_speed", most or speed),
                              ("current_link_width", width), ("numa_node", node)):
            if content is not None:
                (folder / name).write_text(content + "\n")
        return way

    def port(self, root, address, **link):
        """A port of the host."""
        self.root.joinpath("devices", root).mkdir(parents=True, exist_ok=True)
        return self.add(root, address, **link)

    def switch(self, port, up, *down, **link):
        """Adds a switch under a port; returns the paths of its downstream ports."""
        above = self.add(*port, up, **link)
        return [self.add(*above, address, **link) for address in down]


@dataclasses.dataclass
class FakeGpu:
    address: str
    name: str = "GPU"
    bytes: int = 11 << 30


class FakeGpus:
    """Stands for gpus.Gpus."""

    def __init__(self, *addresses, nvlinks=None, apart=(), why=""):
        self.all = [FakeGpu(address) for address in addresses]
        self._nvlinks, self._apart, self._why = nvlinks or {}, apart, why

    def can_reach(self, number, other):
        return (number, other) not in self._apart

    def nvlinks(self):
        return self._nvlinks, self._why
