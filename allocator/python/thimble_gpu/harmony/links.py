"""The links between host and devices that the planner assumes."""

import dataclasses
import os

import tensorflow as tf

from thimble_gpu.harmony import machine
from thimble_gpu.harmony.errors import HarmonyError
from thimble_gpu.harmony.gpus import Gpus
from thimble_gpu.harmony.pci import Tree

_DEFAULT = "11.5 GiB/s to the host for all, 8.2 GiB/s between two, as in the published figures"


@dataclasses.dataclass(frozen=True)
class Links:
    """A topology: the path of a file, or its text. With neither, the planner's default server."""
    description: str
    path: str = None
    text: str = None

    def file_in(self, folder):
        """The path of a file with the topology; None for the planner's default."""
        if self.text is None:
            return self.path
        path = os.path.join(folder, "machine")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text)
        return path


def find(names, path):
    """The links of TensorFlow's devices: from the file `path`, or of this machine if it is None."""
    if path is not None:
        if not os.path.isfile(path):
            raise HarmonyError(f"topology is {path!r}, but there is no such file: write one with "
                               "`thimble topology > FILE`")
        return Links(f"from {path}", path=path)
    if not all(name.startswith("GPU") for name in names):
        return Links(f"{_DEFAULT}: CPU devices have no links")
    try:
        return Links("those of this machine",
                     text=machine.topology(Gpus(), Tree(), _numbers(names)))
    except HarmonyError as error:
        return Links(f"{_DEFAULT}: {error}")


def _numbers(names):
    """The driver's numbers of these GPUs."""
    visible = tf.config.get_visible_devices("GPU")
    if len(tf.config.list_logical_devices("GPU")) != len(visible):
        raise HarmonyError("several logical devices share a GPU")
    physical = [int(device.name.rpartition(":")[2]) for device in visible]
    return [physical[int(name.partition(":")[2])] for name in names]
