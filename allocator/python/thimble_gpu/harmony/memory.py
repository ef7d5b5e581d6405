"""How many bytes the jobs of a plan need on their devices, from what was measured of each.

While a portion is computed, a device holds the job's weights, its sums of gradients, the inputs of
the portion, and what computing takes. If jobs overlap, there are also the weights of the next one.
Where copies overlap with computing, on GPUs, there are also the inputs of the next portion, and at
most what has not left yet: the results of the portion before, or the gradients of the job before.
Before the next portion is computed, these can be the results of two. And results can be more than
what computing takes: some are inputs that are handed on as they are.
"""

import dataclasses


@dataclasses.dataclass
class Peak:
    """Of one job."""
    job: object
    expected: int
    most: int


def arrange(jobs, footprints, base, limit):
    """Lets copies overlap with computing where that fits. Returns the Peak of each job.

    `jobs` are those of one device, in order; `base` is what it holds anyway.
    """
    peaks = [_alone(job, footprints[job], base, limit) for job in jobs]
    for this, following in zip(peaks, peaks[1:]):
        now, then = footprints[this.job], footprints[following.job]
        early, late = then.weights, 0
        if this.job.copies_meanwhile and following.job.copies_meanwhile:
            early += max(0, then.inputs - now.inputs)
            late = now.sums + _waiting(now.results, then.inside)
        this.job.overlaps = this.most + early <= limit and following.most + late <= limit
        if this.job.overlaps:
            this.expected += early
            this.most += early
            following.most += late
    return peaks


def _alone(job, footprint, base, limit):
    alone = base + footprint.weights + footprint.sums + footprint.inputs + footprint.inside
    ahead = alone + footprint.inputs
    most = ahead + _waiting(footprint.results, footprint.inside)
    if job.device.is_gpu and most <= limit:
        job.copies_meanwhile = True
        return Peak(job, ahead, most)
    job.copies_meanwhile = False
    return Peak(job, alone, alone)


def _waiting(results, inside):
    """Results of one portion beside what computing takes; of two, instead of it."""
    return results + max(0, results - inside)
