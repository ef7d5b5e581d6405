"""Which device computes which links, in which order and in which portions: a plan."""

import dataclasses
import json


@dataclasses.dataclass(frozen=True)
class Task:
    """Links first..last, for all samples. On every device (gpu -1): for that device's share.

    `saved`: forward saves what backward needs of it, on the host, and backward does not compute
    forward again. There is such a task of both kinds for the same links.
    """
    first: int
    last: int
    gpu: int
    microbatches: tuple
    saved: bool = False


@dataclasses.dataclass(frozen=True)
class Plan:
    """As thimble_harmony_file() writes it.

    `forward` tasks ascend and end where the last pack begins. `backward` tasks descend; the first
    of them computes forward and backward at once. A pack of several segments becomes a task for
    each of them: the same numbers in less memory, but what is between them goes over the host. So
    do activations that the planner would keep on a GPU: they are saved like those that it swaps.
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
        forward = [_cut(entry, [entry["first"]]) for entry in read["forward"]]
        backward = [_cut(entry, entry.get("segments") or [entry["first"]])
                    for entry in read["backward"]]
        plan = cls(mode=read["mode"], gpus=read["gpus"], batch=read["batch"],
                   forward=sum(forward, ()),
                   backward=sum((tasks[::-1] for tasks in backward), ()),
                   seconds=read.get("seconds", 0.0),
                   compute_fraction=read.get("compute_fraction", 0.0))
        return plan.with_saved({link for entry in read["backward"][1:]
                                for link in entry.get("keep", []) + entry.get("swap", [])})

    def with_saved(self, links):
        """The same, with what these links compute forward saved for their backward.

        Tasks are cut where that begins and ends. Where forward has other portions than backward,
        it is computed again.
        """
        borders = {link for link in links if link - 1 not in links}
        borders |= {link + 1 for link in links}.difference(links)
        borders |= {task.first for task in self.forward if task.first in links}
        last, *others = self.backward
        backward = sum((_at(task, borders)[::-1] for task in others), ())
        borders |= {task.first for task in backward if task.first in links}
        borders |= {task.last + 1 for task in backward if task.first in links}
        forward = sum((_at(task, borders) for task in self.forward), ())
        wanted = {(task.first, task.microbatches) for task in backward if task.first in links}
        saved = {task.first for task in forward if (task.first, task.microbatches) in wanted}
        return dataclasses.replace(self, forward=_marked(forward, saved),
                                   backward=(last, *_marked(backward, saved)))

    def saved(self):
        """Numbers of the links of which forward saves something."""
        return {link for task in self.forward if task.saved
                for link in range(task.first, task.last + 1)}

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


def _marked(tasks, saved):
    return tuple(dataclasses.replace(task, saved=task.first in saved) for task in tasks)


def _cut(entry, heads):
    """A task for each part of a pack, ascending."""
    whole = Task(entry["first"], entry["last"], entry["gpu"], tuple(entry["microbatches"]))
    return _at(whole, heads)


def _at(task, heads):
    heads = sorted({task.first, *(head for head in heads if task.first < head <= task.last)})
    ends = [head - 1 for head in heads[1:]] + [task.last]
    return tuple(dataclasses.replace(task, first=first, last=last)
                 for first, last in zip(heads, ends))
