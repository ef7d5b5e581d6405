"""Selects the mutants to try: the same ones for the same seed."""

import hashlib

from tests.quality import operators

FOLDERS = ("vmm", "stitch", "plan", "swap", "arena")


def _rank(seed, mutant):
    text = "\0".join((str(seed), *(str(part) for part in mutant.key)))
    return hashlib.sha256(text.encode()).digest()


def ordered(root, folder, seed):
    """The mutants of a folder in the order in which they are tried, at most one for each line.

    A mutant's rank depends on nothing else: an edit elsewhere leaves the sample as it is.
    """
    best = {}
    for path in sorted((root / "allocator" / folder).iterdir()):
        if path.suffix not in (".cc", ".h") or path.stem.endswith("_check"):
            continue  # *_check.cc: CheckInvariants() of large classes
        name = path.relative_to(root).as_posix()
        for mutant in operators.mutants(name, path.read_text()):
            place = (mutant.path, mutant.line)
            rank = _rank(seed, mutant)
            if place not in best or rank < best[place][0]:
                best[place] = (rank, mutant)
    return [mutant for _, mutant in sorted(best.values(), key=lambda pair: pair[0])]


def shares(count, folders):
    """How many mutants of each folder: as even as can be."""
    return {folder: count // len(folders) + (index < count % len(folders))
            for index, folder in enumerate(folders)}
