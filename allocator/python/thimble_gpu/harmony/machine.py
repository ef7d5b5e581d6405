"""Writes the topology of this machine as text that the planner reads and people can edit.

The format is that of allocator/offline/harmony/server.h: switches and uplinks, GPUs, NVLinks.
"""

import dataclasses
import os

from thimble_gpu import text
from thimble_gpu.harmony.errors import HarmonyError
from thimble_gpu.selftest import record

_MOST = 8  # GPUs in a plan
# A copy between two GPUs gets this part of a GPU's link; measured on the published server.
_BETWEEN_GPUS = 8.2 / 11.5


def topology(gpus, tree, numbers=None):
    """The text. `gpus` is a gpus.Gpus and `tree` a pci.Tree, or a stand-in for tests.

    `numbers` selects and orders the GPUs; without it, all. A GPU's own link has the rate that
    `thimble selftest` measured, if it has run.
    """
    measured = record.links()
    numbers = range(len(gpus.all)) if numbers is None else numbers
    if not 1 <= len(numbers) <= _MOST:
        raise HarmonyError(f"{len(numbers)} GPUs are visible, but the planner takes 1 to {_MOST}: "
                           "set CUDA_VISIBLE_DEVICES to the GPUs that should train")
    chosen = [gpus.all[number] for number in numbers]
    ways = [_with_rate(tree.links(gpu.address), measured.get(gpu.address)) for gpu in chosen]
    lines = ["# This machine. Rates are bytes per second in each direction, computed from the "
             "number and speed of lanes unless a line says otherwise.", *_switches(ways)]
    for number, (gpu, links) in enumerate(zip(chosen, ways)):
        own, *above = links
        under = f"{above[0].below} link {_rate(own.bytes_per_second)}" if above else own.below
        node = tree.numa_node(gpu.address)
        where = "" if node is None else f", NUMA node {node}"
        lines.append(f"gpu {number} switch {under}  # {gpu.name}, {text.size(gpu.bytes)}{where}, "
                     f"{own}")
    nvlinks, why_not = gpus.nvlinks()
    joined = {tuple(sorted((numbers.index(a), numbers.index(b)))): speed
              for (a, b), speed in nvlinks.items() if a in numbers and b in numbers}
    lines += [f"# {why_not}"] if why_not else []
    lines += [f"nvlink {a} {b} {_rate(speed)}" for (a, b), speed in sorted(joined.items())]
    lines += _between(gpus, numbers, joined, min(links[0].bytes_per_second for links in ways))
    return "\n".join(lines) + "\n"


def _with_rate(links, measured):
    own, *above = links
    return [dataclasses.replace(own, measured=measured), *above]


def host_memory():
    """One more line: the host memory that a plan may use."""
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"host_memory {size}  # {text.size(size)}\n"


def _switches(ways):
    """Lines from the host down, each once. A GPU without a switch gets its own host port as one."""
    lines = {}
    for links in ways:
        switches = links[1:] or links
        for link, above in zip(reversed(switches), [None, *reversed(switches)]):
            under = f" under {above.below}" if above else ""
            lines[link.below] = (f"switch {link.below} uplink {_rate(link.bytes_per_second)}{under}"
                                 f"  # {link}")
    return lines.values()


def _between(gpus, numbers, joined, slowest):
    """The rate between two GPUs over PCI; the planner has one for all pairs without an NVLink."""
    pairs = [(a, b) for b in range(len(numbers)) for a in range(b) if (a, b) not in joined]
    if not pairs:
        return []
    apart = [pair for pair in pairs if not gpus.can_reach(*(numbers[end] for end in pair))]
    if not apart:
        return [f"p2p {_rate(slowest * _BETWEEN_GPUS)}"]
    names = ", ".join(f"{a} and {b}" for a, b in apart)
    return [f"p2p {_rate(slowest * _BETWEEN_GPUS / 2)}  # through the host, so twice: {names}"]


def _rate(bytes_per_second):
    return f"{bytes_per_second / 2**30:.3f}GiB"
