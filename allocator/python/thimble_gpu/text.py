"""How the command writes to people."""

import os
import resource
import signal
import sys


def size(count):
    """Formats bytes for people."""
    for unit, exponent in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << exponent:
            return f"{count / (1 << exponent):.2f} {unit}"
    return f"{count} bytes"


def tell(line):
    """Writes one line to stderr. Does not fail if stderr is closed."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        give_up(sys.stderr)


def give_up(stream):
    """Sends the stream's unwritten data to /dev/null, so that Python does not retry at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def say(line):
    """Writes one line of Thimble's to stderr; stdout belongs to the program."""
    tell(f"thimble: {line}")


def reason(error):
    """Returns what an OSError says and about which file, worded like the core's errors."""
    what = error.strerror or str(error)
    return f"'{error.filename}': {what}" if error.filename else what


def how_ended(status):
    """Describes the status of a process as Python counts it: signals are negative."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def end_by(number):
    """Ends this process by the signal that ended a program, without a second core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
