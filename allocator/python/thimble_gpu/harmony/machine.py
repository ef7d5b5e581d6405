"""The topology of this machine, as a file that the planner reads and people can edit.

The format is that of allocator/offline/harmony/server.h: switches with their uplinks, GPUs, NVLinks.
"""

import os

from thimble_gpu import text
from thimble_gpu.harmony.errors import HarmonyError

_MOST = 8  # GPUs that the planner knows
# Of a GPU's link, what a copy between two of them gets; measured on the published server.
_BETWEEN_GPUS = 8.2 / 11.5


def topology(gpus, tree, numbers=None):
    """The text. `gpus` is a gpus.Gpus and `tree` a pci.Tree, or what stands for them in tests.

    `numbers` says which GPUs, and in which order; without it, all.
    """
    numbers = range(len(gpus.all)) if numbers is None else numbers
    if not 1 <= len(numbers) <= _MOST:
        raise HarmonyError(f"{len(numbers)} GPUs are visible: the planner knows 1 to {_MOST}; set "
                           "CUDA_VISIBLE_DEVICES to those that are to train")
    chosen = [gpus.all[number] for number in numbers]
    ways = [tree.links(gpu.address) for gpu in chosen]
    lines = ["# What this machine has. Rates are bytes per second each way, from lanes and their "
             "speed.", *_switches(ways)]
    for number, (gpu, links) in enumerate(zip(chosen, ways)):
        own, *above = links
        under = f"{above[0].below} link {_rate(own.bytes_per_second)}" if above else own.below
        node = tree.numa_node(gpu.address)
        where = "" if node is None else f", NUMA node {node}"
        lines.append(f"gpu {number} switch {under}  # {gpu.name}, {text.size(gpu.bytes)}{where}")
    nvlinks, why_not = gpus.nvlinks()
    joined = {tuple(sorted((numbers.index(a), numbers.index(b)))): speed
              for (a, b), speed in nvlinks.items() if a in numbers and b in numbers}
    lines += [f"# {why_not}"] if why_not else []
    lines += [f"nvlink {a} {b} {_rate(speed)}" for (a, b), speed in sorted(joined.items())]
    lines += _between(gpus, numbers, joined, min(links[0].bytes_per_second for links in ways))
    return "\n".join(lines) + "\n"


def host_memory():
    """One more line: what a plan may need of the host."""
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"host_memory {size}  # {text.size(size)}\n"


def _switches(ways):
    """From the host down, each once. A GPU without a switch has a port of the host as its own."""
    lines = {}
    for links in ways:
        switches = links[1:] or links
        for link, above in zip(reversed(switches), [None, *reversed(switches)]):
            under = f" under {above.below}" if above else ""
            lines[link.below] = (f"switch {link.below} uplink {_rate(link.bytes_per_second)}{under}"
                                 f"  # {link}")
    return lines.values()


def _between(gpus, numbers, joined, slowest):
    """What two GPUs exchange over PCI; the planner has one figure for all that lack an NVLink."""
    pairs = [(a, b) for b in range(len(numbers)) for a in range(b) if (a, b) not in joined]
    if not pairs:
        return []
    apart = [pair for pair in pairs if not gpus.can_reach(*(numbers[end] for end in pair))]
    if not apart:
        return [f"p2p {_rate(slowest * _BETWEEN_GPUS)}"]
    names = ", ".join(f"{a} and {b}" for a, b in apart)
    return [f"p2p {_rate(slowest * _BETWEEN_GPUS / 2)}  # by way of the host, twice: {names}"]


def _rate(bytes_per_second):
    return f"{bytes_per_second / 2**30:.3f}GiB"
