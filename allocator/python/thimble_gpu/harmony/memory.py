"""The bytes that the jobs of a plan need on their devices, from measurements of each job.

While it computes a microbatch, a device holds the job's weights, its sums of gradients, the inputs
of the microbatch, and what computing takes. If jobs overlap, it also holds the next job's weights.
If copies overlap with computing, as on GPUs, it also holds the inputs of the next microbatch, and
at most what has not left yet: the results of the microbatch before, or the gradients of the job
before. Before the next microbatch is computed, these can be the results of two microbatches.
Results can be larger than what computing takes, because some are inputs that are passed on
unchanged.
"""

import dataclasses


@dataclasses.dataclass
class Peak:
    """The peak bytes during one job."""
    job: object
    expected: int
    most: int


def arrange(jobs, footprints, base, limit):
    """Lets copies overlap with computing where that fits. Returns the Peak of each job.

    `jobs` are the jobs of one device, in order; `base` is what it always holds.
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
    """Results of one microbatch while computing, or of two before computing, if that is more."""
    return results + max(0, results - inside)
