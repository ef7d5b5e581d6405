"""A unit is one program with one or more tests; a runner runs it in a mode."""

import collections
import dataclasses
import glob
import hashlib
import pathlib
import re
import shutil
import tempfile
import threading
import typing

from tests.outside import modes
from tests.outside import process
from tests.outside import recording

FOLDER = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Unit:
    """What one process runs."""
    suite: str
    name: str
    command: tuple  # behind the interpreter
    sources: tuple  # files of this folder that decide what it does
    seconds: int  # of silence before it counts as hanging
    settings: typing.Callable  # variables of a mode, given it, the peak for `swap`, and a path
    modes: tuple = tuple(modes.CPU)
    many: bool = False  # goes on with its other tests after a crash
    narrow: typing.Callable = None  # a smaller unit with the named test, to run it again
    steady: typing.Optional["Unit"] = None  # the same tests, where stock runs differ here

    @property
    def title(self):
        return f"{self.suite} {self.name}"

    @property
    def leaving(self):
        """The test that the process exits normally after all other tests."""
        return f"{self.name} (leaving)"


@dataclasses.dataclass(frozen=True)
class Machine:
    """The tools with which units run, and the folder for results."""
    stock: str  # Python with the frameworks
    thimble: str  # and with Thimble's wheel
    simulator: str
    results: pathlib.Path
    identity: str  # of the wheel: its results are of no use for another one


def forget(results):
    shutil.rmtree(results, ignore_errors=True)


def _digest(*parts):
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


class Runner:
    """Runs units once per mode, unless an earlier run has done so."""

    def __init__(self, machine, say=print):
        self._machine = machine
        self._say = say
        self._locks = collections.defaultdict(threading.Lock)  # by path: narrow units are shared

    def path(self, unit, mode, attempt=0):
        name = re.sub(r"[^\w.-]", "-", unit.name) + (f"~{attempt}" if attempt else "")
        return self._machine.results / unit.suite / mode / f"{name}.jsonl"

    def run(self, unit, mode, attempt=0):
        """Returns the record of the unit in the mode. Later attempts repeat what differed."""
        path = self.path(unit, mode, attempt)
        with self._locks[path]:
            return self._run_at(path, unit, mode, attempt)

    def _run_at(self, path, unit, mode, attempt):
        own = self._variables(unit, mode, path)
        key = self._key(unit, mode, own)
        record = recording.Record(path)
        if record.key != key:
            for file in path.parent.glob(glob.escape(path.stem) + ".*"):
                file.unlink()
            path.parent.mkdir(parents=True, exist_ok=True)
            recording.Recorder(path).key(key)
            record = recording.Record(path)
        if record.figures is None:
            self._say(f"{unit.title}, {mode}" + (f", again ({attempt})" if attempt else ""))
            self._run(unit, mode, own, path)
            record = recording.Record(path)
        return record

    def _key(self, unit, mode, own):
        texts = [(FOLDER / file).read_text() for file in ("recording.py", *unit.sources)]
        identity = "" if modes.is_stock(mode) else self._machine.identity
        return _digest(unit.name, *unit.command, str(sorted(own.items())), identity, *texts)

    def _variables(self, unit, mode, path):
        peak = None
        if mode == modes.SWAP:
            peak = self.run(unit, modes.PLAIN).figures.get("peak_in_use", 0)
        return {recording.VARIABLE: str(path), **unit.settings(mode, peak, path)}

    def _run(self, unit, mode, own, path):
        python = self._machine.stock if modes.is_stock(mode) else self._machine.thimble
        command = [python, *unit.command]
        if "SIMGPU_CONF" in own:
            command = [self._machine.simulator, "--", *command]
        environment = {**modes.clean(), "SIMGPU_PYTHON": python, **own}
        recorder = recording.Recorder(path)
        while True:
            with tempfile.TemporaryDirectory() as folder:
                environment.update(HOME=folder, TMPDIR=folder)
                status = process.run(command, environment, folder, path.with_suffix(".log"), path,
                                     unit.seconds)
            record = recording.Record(path)
            if record.figures is not None:  # it came to its end: so it must leave as well
                recorder.test(unit.leaving, status)
                return
            test = record.unfinished or f"{unit.name} (starting)"
            recorder.test(test, status)
            if not (unit.many and record.unfinished):
                recorder.end()
                return
