"""Runs one microbatch through each job alone and measures it. No variable of the model changes.

This traces the functions and measures, with Thimble, what each job needs on its device. A model
that cannot be computed pack by pack fails here, before training.
"""

import dataclasses
import time

import tensorflow as tf

from thimble_gpu.harmony import device as devices
from thimble_gpu.harmony import step as steps
from thimble_gpu.harmony.job import Context

# Peaks vary a little, because some kernels choose their memory by what is free.
_RUNS = 3
_ENOUGH_SECONDS = 0.5


@dataclasses.dataclass
class Footprint:
    """The bytes of one job on its device, and the seconds of one microbatch."""
    weights: int = 0  # from before the first microbatch until the last is computed
    sums: int = 0  # of gradients, from the first microbatch until they have left
    inputs: int = 0  # of one microbatch
    results: int = 0  # of one microbatch, until they have left
    inside: int = 0  # peak of computing beyond these, including results
    seconds: float = 0.0


def rehearse(step, jobs, runs=_RUNS):
    """Footprints by job. `step` has a batch. Jobs of other lanes equal those of the first lane."""
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
    """Runs each microbatch size once, so that functions are traced before threads train."""
    footprint = Footprint()
    futures = {}
    for span in job.spans:
        size = span[1] - span[0]
        if size not in futures:
            futures[size] = steps.ready(_rehearse_size(step, job, span, runs, footprint))
        # For later jobs, the results of one microbatch stand for all of its size.
        step.announce(job, span, futures[size])
    return footprint


def _rehearse_size(step, job, span, runs, footprint):
    """Returns the results on the host. Raises `footprint` to what this size takes."""
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
