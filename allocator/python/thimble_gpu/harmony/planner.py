"""Finds a plan that fits the devices: profiles, plans and rehearses until it fits."""

import dataclasses

from thimble_gpu.harmony import memory
from thimble_gpu.harmony import profiler
from thimble_gpu.harmony.errors import HarmonyError
from thimble_gpu.harmony.runner import Runner
from thimble_gpu.harmony.saving import CannotSave
from thimble_gpu.harmony.search import plain
from thimble_gpu.harmony.search import search
from thimble_gpu.harmony.step import size_of_batch

_TRIES = 7  # the last one without search
_MORE = 1.2
_KEPT_BY_THREADS = 384 << 10  # small blocks on each device: 0.2 to 0.6 MiB were measured
_SAFE_PART = 0.97  # of the memory, because plans and measurements differ a little


@dataclasses.dataclass
class Prepared:
    """A runner that is ready to train, and the memory it will need."""
    runner: Runner
    peaks: list  # for each device, the Peaks of its jobs
    limits: list

    def predicted(self):
        """Expected peak bytes of each device."""
        return [max((peak.expected for peak in peaks), default=0) for peaks in self.peaks]

    def at_most(self):
        """Largest possible peak bytes of each device."""
        return [max((peak.most for peak in peaks), default=0) for peaks in self.peaks]


def prepare(setting, inputs, labels):
    """Returns a Prepared for batches like this one; HarmonyError if no plan fits."""
    batch = size_of_batch(inputs)
    if setting.plan is not None:
        setting.plan.check(len(setting.chain.stages), len(setting.devices))
        found = _try(setting, setting.plan, inputs, labels)
        _check(setting, found)
        return found
    rows = _profile(setting, inputs, labels, batch)
    _check_layers(setting, rows, min(setting.limits))
    limit = min(device.usable(most) for device, most in zip(setting.devices, setting.limits))
    # The planner and the runner count memory differently: if memory is short, the runner waits for
    # gradients to leave before the next weights come. So search for the limit to give the planner.
    asked, too_little, too_much, best = limit, 0, 4 * limit, None
    for left in reversed(range(_TRIES)):
        find = search if left else plain
        plan = find(rows, len(setting.devices), int(asked if left else limit), batch, setting.mode,
                    setting.microbatch, setting.links)
        if plan is None:
            too_little = asked
            asked = min(asked * _MORE, (asked + too_much) / 2)
            continue
        if not setting.chain.can_regroup:
            plan = plan.with_same_microbatches()
        found = _try(setting, plan, inputs, labels)
        most = max(peak.most for peaks in found.peaks for peak in peaks)
        if most <= limit:
            return found
        best = most if best is None else min(best, most)
        found.runner.close()
        too_much = asked
        asked = max(asked * _SAFE_PART * limit / most, (too_little + asked) / 2)
    remedy = f"give {best + min(setting.limits) - limit}" if best else "give more"
    raise HarmonyError(f"no plan fits in {min(setting.limits)} bytes on each of "
                       f"{len(setting.devices)} devices, though every layer fits alone: {remedy}, "
                       "or make batches smaller")


def _profile(setting, inputs, labels, batch):
    share = batch if setting.mode == "pp" else -(-batch // len(setting.devices))
    sizes = {1, min(4, share)} if setting.microbatch is None else {min(setting.microbatch, share)}
    rate = profiler.update_rate(setting.optimizer)
    rows = profiler.measure(setting.chain, setting.devices[0], setting.loss, inputs, labels, sizes,
                           rate)
    return rows + profiler.extrapolate(rows, batch)


def _check_layers(setting, rows, limit):
    for row in rows:
        if row.ubatch == rows[0].ubatch and row.bwd_mem_bytes > limit:
            stage = setting.chain.stages[row.layer]
            why = ("; these layers are one pack because they share state that training changes, "
                   "such as a BatchNormalization or a Dropout in two places: give each place "
                   "a layer of its own" if stage.shares_state else "")
            raise HarmonyError(
                f"layer '{stage.name}' alone needs {row.bwd_mem_bytes} bytes of device memory for "
                f"microbatches of {row.ubatch} (weights {row.weight_bytes} bytes, gradients, "
                f"activations), but memory is {limit}: give at least {row.bwd_mem_bytes}{why}")


def _try(setting, plan, inputs, labels):
    runner = Runner(setting.chain, setting.devices, plan, setting.loss, setting.optimizer)
    try:
        footprints = runner.rehearse(inputs, labels)
    except CannotSave as error:  # then backward computes forward again
        runner.close()
        return _try(setting, plan.with_saved(plan.saved() - error.stages), inputs, labels)
    jobs = runner.jobs(size_of_batch(inputs))
    peaks = [memory.arrange([job for job in jobs if job.device is device], footprints,
                            device.bytes_in_use() + _KEPT_BY_THREADS, device.usable(limit))
             for device, limit in zip(setting.devices, setting.limits)]
    return Prepared(runner, peaks, setting.limits)


def _check(setting, found):
    for device, peaks, limit in zip(setting.devices, found.peaks, found.limits):
        worst = max(peaks, key=lambda peak: peak.most, default=None)
        if worst is not None and worst.most > limit:
            raise HarmonyError(
                f"the plan does not fit: {worst.job.pack.name} needs up to {worst.most} bytes on "
                f"{device.name}, but memory is {limit}: give at least {worst.most}")
