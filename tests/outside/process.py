"""Runs a program in a process group of its own, with a limit on its silence."""

import os
import signal
import subprocess
import time

WELL = "exit status 0"


def run(command, environment, folder, log, record, seconds):
    """How the program ended: its exit status, the signal that ended it, or that it hung.

    It hangs if the file `record`, to which it writes its progress, has not grown for that many
    seconds. Its other output is appended to the file `log`.
    """
    with open(log, "ab") as output:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=output,
                                   stderr=output, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        return _wait(process, record, seconds)
    finally:
        # Also ends processes that the program left behind, such as the pool of a hanging test.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def _size(path):
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _wait(process, record, seconds):
    size, since = _size(record), time.monotonic()
    while True:
        try:
            status = process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            now = _size(record)
            if now != size:
                size, since = now, time.monotonic()
            elif time.monotonic() - since > seconds:
                return "hung"
            continue
        if status < 0:
            return f"crashed: {signal.Signals(-status).name}"
        return f"exit status {status}"
