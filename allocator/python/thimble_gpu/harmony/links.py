"""Which links between host and devices the planner counts with."""

import dataclasses
import os

import tensorflow as tf

from thimble_gpu.harmony import machine
from thimble_gpu.harmony.errors import HarmonyError
from thimble_gpu.harmony.gpus import Gpus
from thimble_gpu.harmony.pci import Tree

_OWN = "11.5 GiB/s to the host for all, 8.2 GiB/s between two, as in the published figures"


@dataclasses.dataclass(frozen=True)
class Links:
    """A topology: the path of a file, or its text. With neither, the planner's own server."""
    said: str
    path: str = None
    text: str = None

    def file_in(self, folder):
        """The path of a file with it; None for the planner's own."""
        if self.text is None:
            return self.path
        path = os.path.join(folder, "machine")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text)
        return path


def find(names, path):
    """For devices of TensorFlow, "GPU:0"; `path` of a file, or None: as the machine is."""
    if path is not None:
        if not os.path.isfile(path):
            raise HarmonyError(f"topology is {path!r}, where there is no file: `thimble topology` "
                               "prints one of this machine")
        return Links(f"as {path} says", path=path)
    if not all(name.startswith("GPU") for name in names):
        return Links(f"{_OWN}: CPU devices have none")
    try:
        return Links("as this machine has them",
                     text=machine.topology(Gpus(), Tree(), _numbers(names)))
    except HarmonyError as error:
        return Links(f"{_OWN}: {error}")


def _numbers(names):
    """Of GPUs, as the driver counts."""
    visible = tf.config.get_visible_devices("GPU")
    if len(tf.config.list_logical_devices("GPU")) != len(visible):
        raise HarmonyError("several logical devices share a GPU")
    physical = [int(device.name.rpartition(":")[2]) for device in visible]
    return [physical[int(name.partition(":")[2])] for name in names]
