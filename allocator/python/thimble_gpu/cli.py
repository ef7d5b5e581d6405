"""Thimble, a GPU memory allocator for stock TensorFlow and JAX.

Exit status: 0 success; 1 the work failed; 2 bad usage, or a file cannot be read or written; 3 only
the sound part of a damaged log was used. `thimble run` returns the status of its command.
"""

import argparse
import os
import signal
import sys

from thimble_gpu import text
from thimble_gpu.commands import doctor
from thimble_gpu.commands import harmony
from thimble_gpu.commands import plan
from thimble_gpu.commands import report
from thimble_gpu.commands import run
from thimble_gpu.commands import selftest
from thimble_gpu.commands import stats
from thimble_gpu.commands import swap
from thimble_gpu.commands import topology
from thimble_gpu.version import __version__


def main(arguments=None):
    _prepare_streams()
    parser = argparse.ArgumentParser(prog="thimble", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"thimble-gpu {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (run, doctor, selftest, plan, swap, harmony, topology, stats, report):
        command.add_to(commands)
    options = parser.parse_args(arguments)
    try:
        status = options.function(options)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return text.end_by(signal.SIGINT)
    except OSError as error:
        text.tell(f"thimble {options.command}: {text.reason(error)}")
        text.give_up(sys.stdout)
        return 2 if error.filename else 1  # an error without a file name comes from stdout


def _prepare_streams():
    """Behaves like other commands: ends silently when the reader of its output is gone; opens
    closed streams on /dev/null, so that no other file takes their place; prints file names that are
    not valid text unchanged."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            file = os.open(os.devnull, os.O_RDWR)
            if file != number:
                os.dup2(file, number)
                os.close(file)
            setattr(sys, name, open(number, mode, encoding="utf-8"))
    sys.stdout.reconfigure(errors="surrogateescape")


if __name__ == "__main__":
    sys.exit(main())
