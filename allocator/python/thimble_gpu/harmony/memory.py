"""How many bytes the jobs of a plan need on their devices, from what was measured of each.

While a portion is computed, a device holds the job's weights, its sums of gradients, the inputs of
this portion and of the next, and what computing takes. If jobs overlap, there are also the weights of
the next one. At most, a GPU also holds what has not left yet: the results of the portion before, or
the gradients of the job before.
"""

import dataclasses


@dataclasses.dataclass
class Peak:
    """Of one job."""
    job: object
    expected: int
    most: int


def arrange(jobs, footprints, base, limit):
    """Lets the weights of a device's next job come early where both fit. Returns the Peak of each.

    `jobs` are those of one device, in order; `base` is what it holds anyway.
    """
    peaks = [_alone(job, footprints[job], base) for job in jobs]
    for this, following in zip(peaks, peaks[1:]):
        now, then = footprints[this.job], footprints[following.job]
        early = then.weights + max(0, then.inputs - _second_inputs(this.job, now))
        late = now.sums + now.results if this.job.device.copies_meanwhile else 0
        this.job.overlaps = this.most + early <= limit and following.most + late <= limit
        if this.job.overlaps:
            this.expected += early
            this.most += early
            following.most += late
    if jobs:
        jobs[-1].overlaps = False
    return peaks


def _alone(job, footprint, base):
    inside = (base + footprint.weights + footprint.sums + footprint.inputs +
              _second_inputs(job, footprint) + footprint.inside)
    late = footprint.results if job.device.copies_meanwhile and len(job.spans) > 1 else 0
    return Peak(job, inside, inside + late)


def _second_inputs(job, footprint):
    return footprint.inputs if len(job.spans) > 1 else 0
