"""Runs the tests of the core instrumented, and prints which lines and branches they execute."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from tests.quality import lcov
from tests.quality import suite

LEAST = 90  # percent of the lines in every folder
LIBRARY = re.compile(r"=> (\S+/bazel-out/\S+|\S+/_solib_\S+) ")


def run_tests(bazel, tests, folder):
    """Every process of every test adds to one file per program and library in `folder`."""
    status = bazel.show(
        "test", "--config=coverage", "--keep_going", "--nocache_test_results",
        f"--sandbox_writable_path={folder}",
        # %c: counters are written at once, also by what ends in a crash; %m: a name per library
        f"--test_env=LLVM_PROFILE_FILE={folder}/%c%m.profraw", *tests)
    if status != 0:
        sys.exit("Some tests failed, see above: what they execute says nothing.")


def programs(bazel, tests):
    """The tests themselves, which have inline code in them, and the libraries they load."""
    folder = pathlib.Path(bazel.answer("info", "--config=coverage", "bazel-bin"))
    found = [str(folder / test[2:].replace(":", "/")) for test in tests]
    loaded = subprocess.run(["ldd", *found], check=True, text=True, capture_output=True).stdout
    return sorted({*found, *(str(pathlib.Path(path).resolve())
                             for path in LIBRARY.findall(loaded))})


def export(folder, objects):
    """What was executed, in lcov's format."""
    merged = folder / "merged"
    subprocess.run(["llvm-profdata", "merge", "--sparse", "-o", merged,
                    *folder.glob("*.profraw")], check=True)
    first, *others = objects
    names = [word for other in others for word in ("--object", other)]
    # It warns of inline functions that one source uses and another only sees: "mismatched data".
    done = subprocess.run(["llvm-cov", "export", "--format=lcov", f"--instr-profile={merged}",
                           first, *names], check=False, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"llvm-cov failed:\n{done.stderr}")
    return done.stdout


def ranges(lines):
    """Line numbers as text: '3-5, 9'."""
    runs = []
    for line in lines:
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def main():
    parser = argparse.ArgumentParser(prog="./dev coverage", description=__doc__)
    parser.add_argument("--missing", action="store_true",
                        help="list the lines that no test executes")
    options = parser.parse_args()
    bazel = suite.Bazel()
    tests = bazel.tests()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run_tests(bazel, tests, folder)
        sources = lcov.read(export(folder, programs(bazel, tests)))
    if options.missing:
        for path, source in sorted(sources.items()):
            lines = source.missing()
            if lines and path.startswith(tuple(f"allocator/{f}/" for f in suite.FOLDERS)):
                print(f"{path}: {ranges(lines)}")
    sums = lcov.by_folder(sources, suite.FOLDERS)
    print(*lcov.table(sums), sep="\n")
    low = lcov.below(sums, LEAST)
    if low:
        print(f"below {LEAST} % of lines: {', '.join(low)}")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
