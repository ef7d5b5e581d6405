"""Lines and branches by folder, from what llvm-cov writes in lcov's format."""

import collections
import dataclasses


@dataclasses.dataclass
class Source:
    """Of one file: how often each line and each branch was taken."""
    lines: dict = dataclasses.field(default_factory=dict)
    branches: dict = dataclasses.field(default_factory=dict)

    def missing(self):
        return [line for line, count in sorted(self.lines.items()) if count == 0]


@dataclasses.dataclass
class Sum:
    lines: int = 0
    lines_hit: int = 0
    branches: int = 0
    branches_hit: int = 0

    def add(self, source):
        self.lines += len(source.lines)
        self.lines_hit += sum(count > 0 for count in source.lines.values())
        self.branches += len(source.branches)
        self.branches_hit += sum(count > 0 for count in source.branches.values())


def read(text):
    """Sources by path. A file or a line that is there twice was executed if either was."""
    sources = collections.defaultdict(Source)
    source = None
    for record in text.splitlines():
        kind, _, value = record.partition(":")
        if kind == "SF":
            source = sources[value]
        elif kind == "DA":
            line, count = (int(number) for number in value.split(",")[:2])
            source.lines[line] = max(source.lines.get(line, 0), count)
        elif kind == "BRDA":
            *place, taken = value.split(",")
            count = 0 if taken == "-" else int(taken)
            place = tuple(int(number) for number in place)
            source.branches[place] = max(source.branches.get(place, 0), count)
    return dict(sources)


def by_folder(sources, folders):
    """A Sum for each folder of allocator/, and one for all of them."""
    sums = {folder: Sum() for folder in (*folders, "all")}
    for path, source in sources.items():
        parts = path.split("/")
        if parts[0] == "allocator" and parts[1] in folders:
            sums[parts[1]].add(source)
            sums["all"].add(source)
    return sums


def percent(part, whole):
    return 100 * part / whole if whole else 100.0


def table(sums):
    yield f"{'folder':8}  {'lines':>6}  {'covered':>8}  {'branches':>8}  {'covered':>8}"
    for folder, total in sums.items():
        lines = percent(total.lines_hit, total.lines)
        branches = percent(total.branches_hit, total.branches)
        yield (f"{folder:8}  {total.lines:6}  {lines:6.1f} %  {total.branches:8}"
               f"  {branches:6.1f} %")


def below(sums, least):
    """The folders whose lines are covered less than `least` percent."""
    return [folder for folder, total in sums.items()
            if percent(total.lines_hit, total.lines) < least]
