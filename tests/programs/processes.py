"""Runs a program in a fork of a process that has imported a framework and done nothing with it."""

import dataclasses
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import types

from tests.programs.verdict import DONE
from tests.programs.verdict import RAN_OUT

HUNG = "hung"


@dataclasses.dataclass
class Outcome:
    """The outcome of a run: its lines, how it ended, and further data."""
    lines: list
    end: str
    more: object
    log: str


def executed(path, is_out_of_memory):
    """How the program ends. It is `__main__`, as if Python had been started with it."""
    main = types.ModuleType("__main__")
    main.__file__ = path
    sys.modules["__main__"] = main
    try:
        with open(path, encoding="utf-8") as file:
            exec(compile(file.read(), path, "exec"), main.__dict__)
        return DONE
    except BaseException as error:
        traceback.print_exc()
        if is_out_of_memory(error):
            return RAN_OUT
        last = (str(error).strip().splitlines() or [""])[-1]  # TensorFlow has a traceback before it
        return f"raised {type(error).__name__}: {last.strip()}"[:300]


def _wait(process, seconds):
    """Returns the status of a process; None if it had to be stopped. Its children end with it."""
    end = time.monotonic() + seconds
    status = None
    while status is None and time.monotonic() < end:
        done, ended_with = os.waitpid(process, os.WNOHANG)
        if done:
            status = ended_with
        else:
            time.sleep(0.01)
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        pass
    if status is None:
        os.waitpid(process, 0)
    return status


def _child(function, path, output, log, answer):
    os.setpgid(0, 0)
    os.dup2(output.fileno(), 1)
    os.dup2(log.fileno(), 2)
    pickle.dump(function(path), answer)
    answer.flush()
    sys.stdout.flush()  # the process ends without Python's own tidying up


def run(text, function, seconds=300):
    """Calls function(path of the program) in a fork; the function returns how it ended and further
    data."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as log, \
            tempfile.TemporaryFile() as answer, \
            tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(text)
        file.flush()
        process = os.fork()
        if process == 0:
            try:
                _child(function, file.name, output, log, answer)
            finally:
                os._exit(0)  # what the parent would tidy up is not the child's
        status = _wait(process, seconds)
        for each in (output, log, answer):
            each.seek(0)
        lines, log = (each.read().decode(errors="replace") for each in (output, log))
        if status is None:
            end, more = HUNG, None
        elif os.WIFSIGNALED(status):
            end, more = f"ended by {signal.Signals(os.WTERMSIG(status)).name}", None
        else:
            told = answer.read()
            end, more = pickle.loads(told) if told else ("the program ended its process", None)
        return Outcome(lines.splitlines(), end, more, log)
