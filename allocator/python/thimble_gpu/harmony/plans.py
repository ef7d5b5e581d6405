"""A plan: which device computes which stages, in which order and in which microbatches."""

import dataclasses
import json

from thimble_gpu.harmony.errors import HarmonyError


@dataclasses.dataclass(frozen=True)
class Task:
    """Stages first..last, for all samples; on every device (gpu -1), for that device's share.

    `saved`: forward saves on the host what backward needs, so backward does not compute forward
    again. A forward and a backward task for the same stages are both saved, or neither.
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
    one computes forward and backward at once. A pack of several segments becomes one task per
    segment: the same numbers in less memory, but the values between segments go over the host.
    Activations that the planner keeps on a GPU also go over the host, like those that it swaps.
    """
    mode: str  # pp: a stage is on one device at a time; dp: on each, for a share of the samples
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
        return plan.with_saved({stage for entry in read["backward"][1:]
                                for stage in entry.get("keep", []) + entry.get("swap", [])})

    def check(self, stages, devices):
        """Refuses a plan that does not train each of `stages` stages once, on `devices` devices."""
        if self.gpus != devices:
            raise HarmonyError(f"plan: it is for {self.gpus} devices, but {devices} are given: "
                               "make them the same number")
        if not self.backward:
            raise HarmonyError("plan: backward has no task: add one that computes the last stages")
        _check_order("forward", self.forward, range(self.backward[0].first), stages)
        _check_order("backward", self.backward[::-1], range(stages), stages)
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
            raise HarmonyError("plan: the saved forward tasks and the saved backward tasks after "
                               "the first must have the same stages and microbatches: make the "
                               "plan with with_saved()")

    def with_saved(self, stages):
        """The same plan, but these stages save their forward for their backward.

        Cuts tasks where saved stages begin and end. If forward and backward have different
        microbatches, backward computes forward again.
        """
        borders = {stage for stage in stages if stage - 1 not in stages}
        borders |= {stage + 1 for stage in stages}.difference(stages)
        borders |= {task.first for task in self.forward if task.first in stages}
        last, *others = self.backward
        backward = sum((_at(task, borders)[::-1] for task in others), ())
        borders |= {task.first for task in backward if task.first in stages}
        borders |= {task.last + 1 for task in backward if task.first in stages}
        forward = sum((_at(task, borders) for task in self.forward), ())
        wanted = {(task.first, task.microbatches) for task in backward if task.first in stages}
        saved = {task.first for task in forward if (task.first, task.microbatches) in wanted}
        return dataclasses.replace(self, forward=_marked(forward, saved),
                                   backward=(last, *_marked(backward, saved)))

    def saved(self):
        """The numbers of the stages whose forward is saved."""
        return {stage for task in self.forward if task.saved
                for stage in range(task.first, task.last + 1)}

    def with_microbatches(self, microbatches):
        """The same plan with these microbatches in every task."""
        microbatches = tuple(microbatches)
        return dataclasses.replace(self, **{
            name: tuple(dataclasses.replace(task, microbatches=microbatches) for task in tasks)
            for name, tasks in (("forward", self.forward), ("backward", self.backward))})

    def with_same_microbatches(self):
        """The same plan with its smallest microbatches in every task. It needs no more memory."""
        tasks = self.forward + self.backward
        return self.with_microbatches(min((task.microbatches for task in tasks), key=max))


def _check_order(name, tasks, wanted, stages):
    """Refuses tasks, in ascending order, that do not have each of the wanted stages once."""
    begins = [*(task.first for task in tasks), wanted.stop]
    ends = [wanted.start, *(task.last + 1 for task in tasks)]
    if begins == ends and all(task.first <= task.last for task in tasks):
        return
    found = ", ".join(f"{task.first} to {task.last}" for task in tasks) or "none"
    raise HarmonyError(f"plan: the {name} tasks are for stages {found}: give them stages "
                       f"{wanted.start} to {wanted.stop - 1} of the model's {stages}, each once "
                       "and in order")


def _marked(tasks, saved):
    return tuple(dataclasses.replace(task, saved=task.first in saved) for task in tasks)


def _cut(entry, heads):
    """One task per segment of a pack, ascending."""
    whole = Task(entry["first"], entry["last"], entry["gpu"], tuple(entry["microbatches"]))
    return _at(whole, heads)


def _at(task, heads):
    heads = sorted({task.first, *(head for head in heads if task.first < head <= task.last)})
    ends = [head - 1 for head in heads[1:]] + [task.last]
    return tuple(dataclasses.replace(task, first=first, last=last)
                 for first, last in zip(heads, ends))
