"""Which device computes which links, in which order and in which portions: a plan."""

import dataclasses
import json

from thimble_gpu.harmony.errors import HarmonyError


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
    """As `thimble harmony --plan` writes it.

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

    def check(self, links, devices):
        """Refuses a plan that does not train each of so many links once, on so many devices."""
        if self.gpus != devices:
            raise HarmonyError(f"plan: it is for {self.gpus} devices, but {devices} are given")
        if not self.backward:
            raise HarmonyError("plan: backward has no task: its first one computes the last links")
        _check_order("forward", self.forward, range(self.backward[0].first), links)
        _check_order("backward", self.backward[::-1], range(links), links)
        for task in self.forward + self.backward:
            if not -1 <= task.gpu < self.gpus:
                raise HarmonyError(f"plan: {task} is for gpu {task.gpu}: valid are 0 to "
                                   f"{self.gpus - 1}, and -1 for all")
            if not task.microbatches or min(task.microbatches) < 1:
                raise HarmonyError(f"plan: {task} has microbatches {task.microbatches}: give the "
                                   "number of samples in each, from 1")
        saved, restored = ({(task.first, task.last, task.microbatches) for task in tasks
                            if task.saved} for tasks in (self.forward, self.backward[1:]))
        if saved != restored or self.backward[0].saved:
            raise HarmonyError("plan: what forward tasks save must be what backward tasks after the "
                               "first have saved, in the same links and microbatches; with_saved() "
                               "makes them so")

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


def _check_order(name, tasks, wanted, links):
    """The tasks, in ascending order, are for each of the wanted links once."""
    begins = [*(task.first for task in tasks), wanted.stop]
    ends = [wanted.start, *(task.last + 1 for task in tasks)]
    if begins == ends and all(task.first <= task.last for task in tasks):
        return
    found = ", ".join(f"{task.first} to {task.last}" for task in tasks) or "none"
    raise HarmonyError(f"plan: the {name} tasks are for links {found}; they must be for links "
                       f"{wanted.start} to {wanted.stop - 1} of the model's {links}, each once and "
                       "in order")


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
