"""How the command writes and reads."""

import os
import resource
import signal
import sys


def size(count):
    """Bytes for people."""
    for unit, exponent in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << exponent:
            return f"{count / (1 << exponent):.2f} {unit}"
    return f"{count} bytes"


def tell(line):
    """One line on stderr. That nobody can read it is no reason to fail."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        give_up(sys.stderr)


def give_up(stream):
    """What could not be written there is not tried again when Python ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def say(line):
    """One line of Thimble's own: stdout is the program's."""
    tell(f"thimble: {line}")


def reason(error):
    """What an OSError says, and about which file, as the core words it."""
    what = error.strerror or str(error)
    return f"'{error.filename}': {what}" if error.filename else what


def how_ended(status):
    """Of a process, as Python counts: signals are negative."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def end_by(number):
    """Ends by a signal, as a program did, without a second core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
