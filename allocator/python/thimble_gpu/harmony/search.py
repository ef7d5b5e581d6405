"""Asks the core's planner (allocator/harmony) for a plan."""

import ctypes
import dataclasses
import os
import tempfile

from thimble_gpu import abi
from thimble_gpu.harmony import profiler
from thimble_gpu.harmony.errors import HarmonyError
from thimble_gpu.harmony.plans import Plan

_SECONDS = 1  # of search


def search(rows, gpus, limit, batch, mode, portion, same_portions):
    """A Plan, or None if nothing fits into `limit` bytes on each of `gpus` devices.

    `portion`: how many samples to compute at a time, or None. `same_portions`: every pack must get
    the samples in the same portions.
    """
    options = f"gpus:{gpus},memory:{limit},batch:{batch},mode:{mode},seconds:{_SECONDS}"
    core = abi.installed_core()
    info = abi.HarmonyInfo(struct_size=ctypes.sizeof(abi.HarmonyInfo))
    with tempfile.TemporaryDirectory() as folder:
        profile, found = (os.path.join(folder, name) for name in ("profile.csv", "plan.json"))
        profiler.write(rows, profile)
        status = core.harmony_file(os.fsencode(profile), None, options.encode(),
                                   os.fsencode(found), None, info)
        if status in (abi.OUT_OF_MEMORY, abi.INTERNAL):
            return None
        if status != abi.OK:
            raise HarmonyError(core.last_error().decode(errors="replace"))
        with open(found, encoding="utf-8") as file:
            plan = Plan.from_json(file.read())
    if portion is not None:
        share = sum(plan.backward[0].microbatches)
        return _with_portions(plan, [min(portion, share - first)
                                     for first in range(0, share, portion)])
    if same_portions:
        # The smallest ones serve for all: they take no more memory anywhere.
        tasks = plan.forward + plan.backward
        return _with_portions(plan, min((task.microbatches for task in tasks), key=max))
    return plan


def _with_portions(plan, portions):
    portions = tuple(portions)
    return dataclasses.replace(plan, **{
        name: tuple(dataclasses.replace(task, microbatches=portions) for task in tasks)
        for name, tasks in (("forward", plan.forward), ("backward", plan.backward))})
