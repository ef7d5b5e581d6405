"""Which device computes which links, in which order and in which portions: a plan."""

import dataclasses
import json


@dataclasses.dataclass(frozen=True)
class Task:
    """Links first..last, for all samples. On every device (gpu -1): for that device's share."""
    first: int
    last: int
    gpu: int
    microbatches: tuple


@dataclasses.dataclass(frozen=True)
class Plan:
    """As thimble_harmony_file() writes it.

    `forward` tasks ascend and end where the last pack begins. `backward` tasks descend; the first
    of them computes forward and backward at once. A pack of several segments becomes a task for
    each of them: the same numbers in less memory, but what is between them goes over the host. What
    the planner would keep or swap of activations is computed again.
    """
    mode: str  # pp: a link is on one device at a time; dp: on each, for a share of the samples
    gpus: int
    batch: int
    forward: tuple
    backward: tuple
    seconds: float = 0.0
    compute_fraction: float = 0.0

    @classmethod
    def from_json(cls, text):
        read = json.loads(text)
        return cls(mode=read["mode"], gpus=read["gpus"], batch=read["batch"],
                   forward=_tasks(read["forward"]), backward=_segments(read["backward"]),
                   seconds=read.get("seconds", 0.0),
                   compute_fraction=read.get("compute_fraction", 0.0))

    def with_portions(self, portions):
        """The same, with all samples computed in these portions everywhere."""
        portions = tuple(portions)
        return dataclasses.replace(self, **{
            name: tuple(dataclasses.replace(task, microbatches=portions) for task in tasks)
            for name, tasks in (("forward", self.forward), ("backward", self.backward))})

    def with_same_portions(self):
        """The smallest ones serve for all: they take no more memory anywhere."""
        tasks = self.forward + self.backward
        return self.with_portions(min((task.microbatches for task in tasks), key=max))


def _segments(entries):
    tasks = []
    for entry in entries:
        heads = entry.get("segments") or [entry["first"]]
        ends = [head - 1 for head in heads[1:]] + [entry["last"]]
        tasks += [Task(first, last, entry["gpu"], tuple(entry["microbatches"]))
                  for first, last in reversed(list(zip(heads, ends)))]
    return tuple(tasks)


def _tasks(entries):
    return tuple(Task(entry["first"], entry["last"], entry["gpu"], tuple(entry["microbatches"]))
                 for entry in entries)
