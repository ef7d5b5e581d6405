"""Thimble, a GPU memory allocator for stock TensorFlow and JAX.

Exit status: 0 done, 1 the work failed, 2 bad usage; `thimble run` has that of its command.
"""

import argparse
import sys

from thimble_gpu import doctor
from thimble_gpu import figures
from thimble_gpu import harmony_plan
from thimble_gpu import plan
from thimble_gpu import report
from thimble_gpu import run
from thimble_gpu import swap
from thimble_gpu import topology
from thimble_gpu.version import __version__


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="thimble", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"thimble-gpu {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (run, doctor, plan, swap, harmony_plan, topology, figures, report):
        command.add_to(commands)
    options = parser.parse_args(arguments)
    return options.function(options)


if __name__ == "__main__":
    sys.exit(main())
