"""Asks the planner (allocator/offline/harmony) for a plan."""

import os
import tempfile

from thimble_gpu import abi
from thimble_gpu import offline
from thimble_gpu.harmony import profiler
from thimble_gpu.harmony.errors import HarmonyError
from thimble_gpu.harmony.plans import Plan
from thimble_gpu.harmony.plans import Task

_SECONDS = 1  # of search


def search(rows, gpus, limit, batch, mode, microbatch, links):
    """A Plan, or None if nothing fits into `limit` bytes on each of `gpus` devices.

    `microbatch`: samples in a microbatch, or None for the planner's choice. `links`: see links.py.
    """
    with tempfile.TemporaryDirectory() as folder:
        profile, found = (os.path.join(folder, name) for name in ("profile.csv", "plan.json"))
        profiler.write(rows, profile)
        try:
            # The optimizer runs on the host, so no pack can be resident.
            offline.run("harmony", profile=profile, topology=links.file_in(folder), plan=found,
                        gpus=gpus, memory=limit, batch=batch, mode=mode, seconds=_SECONDS,
                        resident="off")
        except abi.ThimbleError as error:
            if error.status in (abi.OUT_OF_MEMORY, abi.INTERNAL):
                return None
            raise HarmonyError(str(error)) from None
        with open(found, encoding="utf-8") as file:
            plan = Plan.from_json(file.read())
    if microbatch is None:
        return plan
    share = sum(plan.backward[0].microbatches)
    return plan.with_microbatches(
        min(microbatch, share - first) for first in range(0, share, microbatch))


def plain(rows, gpus, limit, batch, mode, microbatch, _):
    """A Plan without search, for little memory: packs as many layers as fit, from the last down.

    Uses the largest measured microbatch size in which every layer fits; None if there is none.
    """
    mode = "pp" if mode == "auto" else mode
    share = batch if mode == "pp" else -(-batch // gpus)
    for size in sorted({row.ubatch for row in rows}, reverse=True):
        needs = [row.bwd_mem_bytes for row in rows if row.ubatch == size]
        if size > (microbatch or share) or max(needs) > limit:
            continue
        heads, room = [], 0
        for layer in reversed(range(len(needs))):
            if needs[layer] > room:
                heads.append(layer + 1)
                room = limit
            room -= needs[layer]
        borders = [0] + heads[::-1]
        spans = [(first, last - 1) for first, last in zip(borders, borders[1:])]
        microbatches = tuple(min(size, share - first) for first in range(0, share, size))
        gpu = [number % gpus if mode == "pp" else -1 for number in range(2 * len(spans))]
        forward = [Task(*span, gpu[i], microbatches) for i, span in enumerate(spans[:-1])]
        backward = [Task(*span, gpu[i + len(forward)], microbatches)
                    for i, span in enumerate(reversed(spans))]
        return Plan(mode, gpus, batch, tuple(forward), tuple(backward))
    return None
