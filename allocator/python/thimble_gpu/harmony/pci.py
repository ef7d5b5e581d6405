"""The PCI tree as Linux shows it: the switches above a device, and the rates of links.

    root port         A link joins a downstream port (of the host or a switch) with what is below.
       | link         A switch is one upstream port and several downstream ports. Linux lists each
    switch: up        port as a bridge. So on the way from the host to a device, every second bridge
    switch: down      has a link above it.
       | link
    device
"""

import dataclasses
import os
import re

from thimble_gpu.harmony.errors import HarmonyError

_ADDRESS = re.compile(r"([0-9a-fA-F]+):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])")
_ROOT = re.compile(r"pci[0-9a-f]+:[0-9a-f]{2}")
# The part of a link's bits that arrives as data, measured on the server of the published figures:
# 11.5 GiB/s over 16 lanes of 8 GT/s.
_DELIVERED = 11.5 * 2**30 / (8e9 * 128 / 130 * 16 / 8)


@dataclasses.dataclass(frozen=True)
class Link:
    """Joins a device or a switch to what is above it."""
    below: str  # address of the device, or of the switch's upstream port
    gigatransfers: float  # per second and lane
    lanes: int
    measured: float = None  # bytes per second, each way; None: unknown

    @property
    def bytes_per_second(self):
        """Each way."""
        return self.measured or self.gigatransfers * 1e9 * _coding(self.gigatransfers) * self.lanes / 8 * _DELIVERED

    def __str__(self):
        measured = ", measured by thimble selftest" if self.measured else ""
        return f"{self.gigatransfers:g} GT/s x{self.lanes}{measured}"


def _coding(gigatransfers):
    """The part of the bits that carries data, not line coding."""
    if gigatransfers < 8:
        return 8 / 10
    return 128 / 130 if gigatransfers < 64 else 242 / 256


def address(text):
    """Linux' form of an address, 0000:3b:00.0. NVIDIA's libraries use more zeros, and capitals."""
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise HarmonyError(f"{text!r} is not a PCI address such as 0000:3b:00.0")
    return "{:04x}:{:02x}:{:02x}.{}".format(*(int(part, 16) for part in found.groups()))


class Tree:
    """The devices below `root`, which is /sys except in tests."""

    def __init__(self, root="/sys"):
        self._devices = os.path.join(root, "bus", "pci", "devices")

    def links(self, device):
        """The links from the device up to the host."""
        way = self._way(device)
        facing_up = way[1::2] if len(way) > 1 else way
        if facing_up[-1] != device:
            raise HarmonyError(f"{device} is below {way[-2]}, a bridge that is not PCI Express: "
                               "Linux does not say what devices share there")
        above = dict(zip(way[1:], way))
        return [self._link(below, above.get(below)) for below in reversed(facing_up)]

    def numa_node(self, device):
        """The number of the nearest memory node; None if the machine has only one."""
        text = self._read(device, "numa_node")
        return int(text) if text is not None and text.isdigit() else None

    def _way(self, device):
        """Addresses from the host's port down to the device."""
        entry = os.path.join(self._devices, device)
        if not os.path.exists(entry):
            raise HarmonyError(f"{entry} does not exist: containers and virtual machines may hide "
                               "the PCI tree")
        parts = os.path.realpath(entry).split(os.sep)
        start = max((i for i, part in enumerate(parts) if _ROOT.fullmatch(part)), default=None)
        if start is None:
            raise HarmonyError(f"{entry} leads to {os.path.realpath(entry)}, which is not below a "
                               "root of a PCI tree (pci0000:00)")
        return parts[start + 1:]

    def _link(self, below, above):
        ends = [end for end in (below, above) if end is not None]
        # An idle GPU lowers its speed. Under load it runs at the most that both ends support.
        speeds = [self._number(end, "max_link_speed") for end in ends]
        speeds = [speed for speed in speeds if speed] or [self._number(below, "current_link_speed")]
        lanes = self._number(below, "current_link_width")
        for name, value in (("max_link_speed", speeds[0]), ("current_link_width", lanes)):
            if not value:
                path = os.path.join(self._devices, below, name)
                raise HarmonyError(f"{path} says {self._read(below, name)!r}, so the speed of the "
                                   f"link of {below} is unknown")
        return Link(below, min(speeds), int(lanes))

    def _number(self, device, name):
        """The number at the beginning of a file; None if there is none."""
        found = re.match(r"[0-9]+(\.[0-9]+)?", self._read(device, name) or "")
        return float(found.group()) if found else None

    def _read(self, device, name):
        try:
            with open(os.path.join(self._devices, device, name), encoding="ascii") as file:
                return file.read().strip()
        except (OSError, UnicodeDecodeError):
            return None
