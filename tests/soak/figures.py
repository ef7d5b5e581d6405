"""What a process holds, and whether that grows."""

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
        # Not Pss: shares of libraries grow when other processes end.
        "private": _kilobytes("/proc/self/smaps_rollup", "Private_Dirty"),
        "memfd": _memfd_bytes(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "mappings": mappings,
        "threads": len(os.listdir("/proc/self/task")),
    }


def growth(samples):
    """How much more there is, at the least, in the last third than ever was in the first half.

    The first tenth does not count. Rounds differ, so a single one says nothing; but what leaks is
    never given back, and shows in every round of the last third.
    """
    samples = samples[max(1, int(FIRST * len(samples))):]
    third = max(1, len(samples) // 3)
    return min(samples[-third:]) - max(samples[:max(1, len(samples) // 2)])


def grown(ours, stock):
    """Figures that grow, with by how much: more per round than stock's do by themselves.

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
