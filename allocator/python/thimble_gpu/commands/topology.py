"""`thimble topology`: prints GPUs and links of this machine for `thimble harmony`."""

from thimble_gpu import text
from thimble_gpu.harmony.errors import HarmonyError
from thimble_gpu.harmony.gpus import Gpus
from thimble_gpu.harmony.machine import host_memory
from thimble_gpu.harmony.machine import topology
from thimble_gpu.harmony.pci import Tree

FAILED = ("thimble: cannot read the topology of this machine: {}. Write what you know into a "
          "file, one per line: 'switch a uplink 11.5GiB', 'gpu 0 switch a', 'nvlink 0 1 23GiB'")


def add_to(commands):
    parser = commands.add_parser(
        "topology", help="print the GPUs and links of this machine, for `thimble harmony`",
        description="Prints switches, GPUs and NVLinks of this machine with their bandwidths, from "
        "the CUDA driver and Linux' PCI tree, for --topology of `thimble harmony`.")
    parser.set_defaults(function=_topology)


def _topology(_):
    written = read()
    if written is None:
        return 1
    print(written, end="")
    return 0


def read():
    """Returns the text. On failure, writes one line to standard error and returns None."""
    try:
        return topology(Gpus(), Tree()) + host_memory()
    except HarmonyError as error:
        text.tell(FAILED.format(error))
        return None
