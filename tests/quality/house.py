"""The house in figures: lines by room, what runs in a training process, and second lists of facts.

usage: ./dev house
"""

import pathlib
import re

from tests.quality import suite

SOURCES = (".c", ".cc", ".cu", ".def", ".h", ".js", ".py")
INSIDE = "what runs in a training process"
ROOMS = {
    "allocator/{base,driver,vmm,stitch,plan,swap,arena,observe}": INSIDE,
    "tf_plugin": INSIDE,
    "xla_plugin": INSIDE,
    "allocator/offline": "what runs before or after it",
    "allocator/python": "commands, Harmony's runner, pages",
    "tests/{bench,simgpu,workloads}": "programs, not tests",
    "tests": "tests",
}
LIBRARY = "//allocator:libthimble.so"
MOST_LINES = 16000  # of LIBRARY
# The one list of a fact, and how it names one.
FACTS = {
    "statistics": ("allocator/base/statistics.def", re.compile(r"STATISTIC\(([a-z_]+), \"")),
    "options": ("allocator/arena/options.def", re.compile(r"^THIMBLE_(?:ARENA_)?OPTION\((\w+),",
                                                          re.MULTILINE)),
    "events": ("allocator/base/events.def", re.compile(r"^THIMBLE_EVENT\(\w+, \"(\w+)\"",
                                                       re.MULTILINE)),
}

# The parser of THIMBLE_CONF, and what has to know before there is a core.
PARSERS = ["allocator/arena/options.cc", "tf_plugin/wanted.h"]
# A text is taken apart at a comma or a colon.
SPLIT = re.compile(r"""(?:Split|split|partition|find\w*|take|chr|MaxSplits|index\w*)\(
                       (?:[^()]*,\ )?["'](,|:)["']""", re.VERBOSE)
SPLIT_LINES = 5  # of the code that does both
# Options that fronts have besides the core's, and where users read about them.
FRONTS = {
    "tf_plugin/options.def": "tf_plugin/README.md",
    "xla_plugin/driver_front/options.def": "xla_plugin/README.md",
}
FRONT_OPTION = re.compile(r"^THIMBLE_[A-Z]+_OPTION\((\w+),", re.MULTILINE)


def sources(root=suite.ROOT):
    """{path: text} of all sources, without what was built."""
    tops = ("allocator", "tf_plugin", "xla_plugin", "tests")
    return {str(path.relative_to(root)): path.read_text(errors="replace")
            for top in tops for path in sorted((root / top).rglob("*")) if path.suffix in SOURCES}


def lines(text):
    return text.count("\n")


def _folders(pattern):
    """allocator/{a,b}: allocator/a and allocator/b."""
    head, _, names = pattern.partition("{")
    return tuple(f"{head}{name}/" for name in names.rstrip("}").split(","))


def room_of(path):
    """The first room that it is in; None for what is at the top of allocator/."""
    return next((room for room in ROOMS if path.startswith(_folders(room))), None)


def is_test(path):
    return room_of(path) == "tests"


def is_product(path):
    return not path.startswith("tests/")


# --- Facts ----------------------------------------------------------------------------------------


def names_of(fact, files):
    path, pattern = FACTS[fact]
    return pattern.findall(files[path])


def lists(names, text):
    """Whether a text lists them: most of them, on no more lines than twice as many as they are.

    A name is in quotes, a key, or a constant or variable of its own in any style: "in_use",
    in_use:, IN_USE, kInUse and in_use, but not stats.in_use, which is a use.
    """
    spelled = {form: name for name in names for form in (
        f'"{name}"', f"{name}:", name.upper(), "k" + "".join(map(str.capitalize, name.split("_"))),
        *([name] if "_" in name else []))}
    found = [{spelled[word] for word in re.findall(r'(?<![.\w])(?:"\w+"|\w+:?)', line)
              if word in spelled} for line in text.splitlines()]
    height = 2 * len(names)
    return any(2 * len(set().union(*found[first:first + height])) > len(names)
               for first in range(max(1, len(found) - height + 1)))


def places(fact, files):
    """All sources that list what the fact has, but tests of it: they say what to expect."""
    names, own = names_of(fact, files), FACTS[fact][0]
    return [own] + [path for path, text in files.items()
                    if path != own and "_test." not in path and lists(names, text)]


def splits_options(text):
    """Whether a text has code that takes "key:value,key:value" apart."""
    found = [set(SPLIT.findall(line)) for line in text.splitlines()]
    return any({",", ":"} <= set().union(*found[first:first + SPLIT_LINES])
               for first in range(len(found)))


def parsers(files):
    """The product's sources that take options apart."""
    return [path for path, text in files.items() if is_product(path) and splits_options(text)]


# --- The command ----------------------------------------------------------------------------------


def library_sources(bazel):
    labels = bazel.answer("query", f"kind('source file', deps({LIBRARY}))").split()
    paths = (label[2:].replace(":", "/").lstrip("/") for label in labels if label.startswith("//"))
    return [path for path in paths if pathlib.Path(path).suffix in SOURCES]


def main():
    files = sources()
    print("lines by room")
    for room, what in ROOMS.items():
        own = [text for path, text in files.items() if room_of(path) == room]
        print(f"  {sum(map(lines, own)):6} in {len(own):3} files  {room}: {what}")
    own = library_sources(suite.Bazel())
    total = sum(lines(files[path]) for path in own)
    print(f"{LIBRARY}: {total} lines in {len(own)} files, at most {MOST_LINES}")
    tests, product = (sum(lines(text) for path, text in files.items() if is_of_kind(path))
                      for is_of_kind in (is_test, is_product))
    print(f"lines of tests for a line of the product: {tests / product:.2f}")
    print("largest files")
    for path in sorted(files, key=lambda path: -lines(files[path]))[:10]:
        print(f"  {lines(files[path]):6}  {path}")
    print("places that list a fact")
    for fact in FACTS:
        found = places(fact, files)
        print(f"  {len(found):6}  {len(names_of(fact, files))} {fact}: {', '.join(found)}")
    print(f"what takes THIMBLE_CONF apart: {', '.join(parsers(files))}")
    return 0 if total <= MOST_LINES else 1


if __name__ == "__main__":
    raise SystemExit(main())
