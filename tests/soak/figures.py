"""Reads what a process holds, and finds whether it grows."""

import os

BYTES = ("rss", "private", "memfd")
EXACT = ("descriptors", "threads")  # of the others, malloc and Python have some here and there
FIRST = 0.1  # of the rounds: until everything was met once


def _kilobytes(path, key):
    with open(path, encoding="ascii") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith(key + ":"))


def _memfd_bytes():
    """Bytes behind descriptors of shared memory, mapped or not."""
    total = 0
    for number in os.listdir("/proc/self/fd"):
        path = f"/proc/self/fd/{number}"
        try:
            if os.readlink(path).startswith("/memfd:"):
                total += os.stat(path).st_blocks * 512
        except FileNotFoundError:  # that of the listing itself
            pass
    return total


def figures():
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        mappings = sum(1 for _ in maps)
    return {
        "rss": _kilobytes("/proc/self/status", "VmRSS"),
        # Not Pss: a process's share of libraries grows when other processes end.
        "private": _kilobytes("/proc/self/smaps_rollup", "Private_Dirty"),
        "memfd": _memfd_bytes(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "mappings": mappings,
        "threads": len(os.listdir("/proc/self/task")),
    }


def growth(samples):
    """Returns the minimum over the last third minus the maximum over the first half.

    The first tenth does not count. A single round says nothing, because rounds differ; but a leak
    is never given back, so it shows in every round of the last third.
    """
    samples = samples[max(1, int(FIRST * len(samples))):]
    third = max(1, len(samples) // 3)
    return min(samples[-third:]) - max(samples[:max(1, len(samples) // 2)])


def grown(ours, stock):
    """Returns figures that grow more per round than stock's, and by how much.

    But for EXACT ones, less than a hundredth of what is there is forgiven.
    """
    found = {}
    for name in ours[0]:
        mine, other = ([each[name] for each in rounds] for rounds in (ours, stock))
        allowed = max(0, growth(other)) * len(mine) / len(other)
        allowed += 0 if name in EXACT else max(mine) / 100
        if growth(mine) > allowed:
            found[name] = growth(mine)
    return found
