"""The PCI tree as Linux shows it: which switches a device hangs under, and what links carry.

    root port         A link joins a port that faces down (of the host, or of a switch) with what is
       | link         below it. A switch is one port up and several down, which Linux lists as
    switch: up        bridges of their own: so of all that is on the way from the host to a device,
    switch: down      every second one has a link above it.
       | link
    device
"""

import dataclasses
import os
import re

from thimble_gpu.harmony.errors import HarmonyError

_ADDRESS = re.compile(r"([0-9a-fA-F]+):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])")
_ROOT = re.compile(r"pci[0-9a-f]+:[0-9a-f]{2}")
# Of what the lanes carry, this part arrives as data. It is what was measured on the server of the
# published figures: 11.5 GiB/s over 16 lanes of 8 GT/s.
_DELIVERED = 11.5 * 2**30 / (8e9 * 128 / 130 * 16 / 8)


@dataclasses.dataclass(frozen=True)
class Link:
    """What joins a device or a switch to what is above it."""
    below: str  # address of the device, or of the switch's port that faces up
    gigatransfers: float  # per second and lane
    lanes: int

    @property
    def bytes_per_second(self):
        """Each way."""
        return self.gigatransfers * 1e9 * _coding(self.gigatransfers) * self.lanes / 8 * _DELIVERED

    def __str__(self):
        return f"{self.gigatransfers:g} GT/s x{self.lanes}"


def _coding(gigatransfers):
    """What part of the bits is not there for the line itself."""
    if gigatransfers < 8:
        return 8 / 10
    return 128 / 130 if gigatransfers < 64 else 242 / 256


def address(text):
    """As Linux writes it: 0000:3b:00.0. NVIDIA's libraries write more zeros, and capitals."""
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise HarmonyError(f"{text!r} is no PCI address, which looks like 0000:3b:00.0")
    return "{:04x}:{:02x}:{:02x}.{}".format(*(int(part, 16) for part in found.groups()))


class Tree:
    """The devices below `root`, which is /sys but in tests."""

    def __init__(self, root="/sys"):
        self._devices = os.path.join(root, "bus", "pci", "devices")

    def links(self, device):
        """From the device's own up to the one that ends at the host."""
        way = self._way(device)
        facing_up = way[1::2] if len(way) > 1 else way
        if facing_up[-1] != device:
            raise HarmonyError(f"{device} hangs under a bridge that is not one of PCI Express, "
                               f"{way[-2]}: Linux does not tell what is shared there")
        above = dict(zip(way[1:], way))
        return [self._link(below, above.get(below)) for below in reversed(facing_up)]

    def numa_node(self, device):
        """Number of the node whose memory is near; None if the machine has only one."""
        text = self._read(device, "numa_node")
        return int(text) if text is not None and text.isdigit() else None

    def _way(self, device):
        """Addresses from the port of the host down to the device."""
        entry = os.path.join(self._devices, device)
        if not os.path.exists(entry):
            raise HarmonyError(f"{entry} is not there: containers and virtual machines may hide "
                               "the PCI tree")
        parts = os.path.realpath(entry).split(os.sep)
        start = max((i for i, part in enumerate(parts) if _ROOT.fullmatch(part)), default=None)
        if start is None:
            raise HarmonyError(f"{entry} leads to {os.path.realpath(entry)}, which is not under a "
                               "root of a PCI tree (pci0000:00)")
        return parts[start + 1:]

    def _link(self, below, above):
        ends = [end for end in (below, above) if end is not None]
        # A GPU that has nothing to do lowers its speed: what both ends can do is what it will be.
        speeds = [self._number(end, "max_link_speed") for end in ends]
        speeds = [speed for speed in speeds if speed] or [self._number(below, "current_link_speed")]
        lanes = self._number(below, "current_link_width")
        for name, value in (("max_link_speed", speeds[0]), ("current_link_width", lanes)):
            if not value:
                path = os.path.join(self._devices, below, name)
                raise HarmonyError(f"{path} says {self._read(below, name)!r}: how fast the link of "
                                   f"{below} is cannot be told from that")
        return Link(below, min(speeds), int(lanes))

    def _number(self, device, name):
        """What a file begins with; None if it does not begin with a number."""
        found = re.match(r"[0-9]+(\.[0-9]+)?", self._read(device, name) or "")
        return float(found.group()) if found else None

    def _read(self, device, name):
        try:
            with open(os.path.join(self._devices, device, name), encoding="ascii") as file:
                return file.read().strip()
        except (OSError, UnicodeDecodeError):
            return None
