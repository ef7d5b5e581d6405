"""Runs one portion through every job, alone, and measures it. No variable of the model changes.

What a job needs on its device follows: functions are traced, their peaks are Thimble's own figures,
and a model that cannot be computed pack by pack fails here, before training.
"""

import dataclasses
import time

import tensorflow as tf

from thimble_gpu.harmony import device as devices
from thimble_gpu.harmony import step as steps
from thimble_gpu.harmony.job import Context

# Where kernels take memory by what is free, peaks differ a little.
_RUNS = 3
_ENOUGH_SECONDS = 0.5


@dataclasses.dataclass
class Footprint:
    """Bytes of one job on its device, and seconds of one portion."""
    weights: int = 0  # from before the first portion until the last is computed
    sums: int = 0  # of gradients, from the first portion until they have left
    inputs: int = 0  # of one portion
    results: int = 0  # of one portion, until they have left
    inside: int = 0  # most that computing takes beyond these, results included
    seconds: float = 0.0


def rehearse(step, jobs, runs=_RUNS):
    """Footprints by job. `step` has a batch; jobs of other lanes are like those of the first."""
    footprints = {}
    for job in jobs:
        if job.lane == 0:
            footprints[job] = _rehearse_one(step, job, runs)
    for job in jobs:
        if job.lane:
            footprints[job] = next(footprint for other, footprint in footprints.items()
                                   if other.function is job.function)
    return footprints


def _rehearse_one(step, job, runs):
    """Every size of a portion, once: functions are traced here, and not while threads train."""
    footprint = Footprint()
    cells = {}
    for span in job.spans:
        size = span[1] - span[0]
        if size not in cells:
            cells[size] = steps.ready(_rehearse_size(step, job, span, runs, footprint))
        # Results of one portion stand for those of all, for the jobs after it.
        step.announce(job, span, cells[size])
    return footprint


def _rehearse_size(step, job, span, runs, footprint):
    """The results, on the host. Raises `footprint` to what this size takes."""
    device, context = job.device, Context()
    share = (span[1] - span[0]) / step.batch
    weights = job.bring_weights()
    brought = step.bring(job, span, steps.ready(None))
    if brought["state"] is None:
        brought["state"] = [device.bring(job.initial_state(v)) for v in job.pack.state]
    footprint.weights = devices.size_of(tf.nest.flatten(weights))
    footprint.inputs = max(footprint.inputs, devices.size_of(tf.nest.flatten(brought)))
    footprint.sums = devices.size_of(weights[0]) if job.is_backward else 0
    results = job.compute(context, weights, brought, share, tf.ones([]))  # traces; keeps constants
    times = []
    while len(times) < runs and (len(times) < 2 or sum(times) < _ENOUGH_SECONDS):
        del results
        before = device.bytes_in_use()
        device.reset_peak()
        start = time.perf_counter()
        results = job.compute(context, weights, brought, share, tf.ones([]))
        device.wait()
        times.append(time.perf_counter() - start)
        footprint.inside = max(footprint.inside, device.peak_bytes() - before)
    footprint.seconds = max(footprint.seconds, min(times))
    footprint.results = max(footprint.results, devices.size_of(tf.nest.flatten(results)))
    taken = job.take_away(results)
    job.take_gradients(context)
    return taken
