"""Tries a mutant: in a copy of the tree, with an output base that is kept between mutants."""

import contextlib
import hashlib
import json
import os
import re

from tests.quality import operators
from tests.quality import suite
from tests.quality import verdicts

NOT_COPIED = (".git", ".outside", ".setup.lock", ".venv", "__pycache__", "dist")
NO_CODE = (".md", ".py", ".csv")
FAILED = re.compile(r"^(//\S+) .*\b(?:FAILED|TIMEOUT) in ", re.MULTILINE)
LONGEST = 30  # seconds: what takes longer without a mutant is left out
SLOW = (1, 5)  # seconds: tests up to the first run before those up to the second, and so on


def words(name):
    return set(re.split(r"[^a-z0-9]+", name.lower())) - {"", "tests", "test", "unit", "cc", "h"}


def batches(tests, seconds, path, killer):
    """The tests in the order in which they are tried: what killed it before, near, cheap, dear."""
    near = words(path.removeprefix("allocator/"))
    groups = [[] for _ in range(len(SLOW) + 3)]
    for test in tests:
        if test == killer:
            groups[0].append(test)
        elif near & words(test) and seconds[test] <= SLOW[-1]:
            groups[1].append(test)
        else:
            groups[2 + sum(seconds[test] > limit for limit in SLOW)].append(test)
    return [group for group in groups if group]


def files(root):
    """The names of all files of a tree, without what was made there."""
    names = []
    for folder, folders, inside in os.walk(root):  # which follows no links, such as bazel-bin
        folders[:] = [name for name in folders if name not in NOT_COPIED]
        names += (os.path.relpath(os.path.join(folder, name), root) for name in inside
                  if name not in NOT_COPIED)
    return sorted(names)


class Tree:
    """A copy of what is in the working tree, committed or not."""

    def __init__(self, root, folder):
        self.path = folder / "tree"
        self.path.mkdir(parents=True, exist_ok=True)
        names = files(root)
        self.digests = {}  # of files
        for name in names:
            content = (root / name).read_bytes()
            self._write(name, content, (root / name).stat().st_mode)
            if not name.endswith(NO_CODE):
                self.digests[name] = hashlib.sha256(content).hexdigest()
        self.digest = hashlib.sha256(repr(self.digests).encode()).hexdigest()
        for name in set(files(self.path)).difference(names):
            (self.path / name).unlink()
        venv = self.path / ".venv"
        if not venv.is_symlink():
            venv.symlink_to(root / ".venv")

    def _write(self, name, content, mode):
        path = self.path / name
        if path.exists() and path.read_bytes() == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)

    @contextlib.contextmanager
    def mutated(self, mutant):
        path = self.path / mutant.path
        text = path.read_text()
        path.write_text(operators.applied(mutant, text))
        try:
            yield
        finally:
            path.write_text(text)


class Trials:
    """Runs tests in a Tree."""

    def __init__(self, tree, folder, jobs):
        self._tree = tree
        self._events = folder / "events.json"
        self._bazel = suite.Bazel(tree.path, output_base=folder / "bazel")
        self._options = ["--config=coverage", "--test_env=LLVM_PROFILE_FILE=/dev/null",
                         f"--build_event_json_file={self._events}"]
        if jobs:
            self._options += [f"--jobs={jobs}", f"--local_test_jobs={jobs}"]
        self._tests = self._bazel.tests()
        self._seconds = self._unmutated()

    def _unmutated(self):
        """How many seconds the tests take that end in time; all of those must pass."""
        self._bazel.show("test", *self._options, "--keep_going", f"--test_timeout={LONGEST}",
                         *self._tests)
        seconds, late = {}, set()
        for line in self._events.read_text().splitlines():
            event = json.loads(line)
            if "testResult" not in event:
                continue
            label, result = event["id"]["testResult"]["label"], event["testResult"]
            if result["status"] == "TIMEOUT":
                late.add(label)
            elif result["status"] != "PASSED":
                raise SystemExit(f"{label} fails without any mutant, see above.")
            took = int(result.get("testAttemptDurationMillis", 0)) / 1000
            seconds[label] = max(seconds.get(label, 0), took)
        missing = set(self._tests).difference(seconds)
        if missing:
            raise SystemExit(f"These tests did not run, see above: {' '.join(sorted(missing))}")
        return {test: took for test, took in seconds.items() if test not in late}

    def _depending(self, path):
        folder, _, name = path.rpartition("/")
        tests = f"set({' '.join(self._seconds)})"
        answer = self._bazel.answer("query", f"rdeps({tests}, //{folder}:{name}) intersect {tests}")
        return answer.split()

    def run(self, mutant, killer=None):
        """How the mutant ends, and the test that killed it."""
        tests = self._depending(mutant.path)
        with self._tree.mutated(mutant):
            for group in batches(tests, self._seconds, mutant.path, killer):
                # An endless loop is noticed, too, also where the machine is busy.
                limit = 60 + int(5 * max(self._seconds[test] for test in group))
                status, said = self._bazel.run("test", *self._options, "--notest_keep_going",
                                               f"--test_timeout={limit}", *group)
                killers = FAILED.findall(said)
                if killers:
                    return verdicts.KILLED, killers[0]
                if status != 0:
                    return verdicts.NOT_BUILT, None
        return verdicts.SURVIVED, None

    def close(self):
        self._bazel.run("shutdown")
