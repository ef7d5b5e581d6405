"""Runs steps of random jobs on a simulated GPU, and checks that its memory stays within the bound.

The streams, waits and bound are Harmony's own; the jobs only hold blocks, for random times.
usage: bounds_case.py SEED CASES
"""

import random
import sys
import threading
import time
import types

from thimble_gpu.harmony import device as devices
from thimble_gpu.harmony import memory
from thimble_gpu.harmony import step as steps
from thimble_gpu.harmony.rehearsal import Footprint


class Gpu:
    """Counts the bytes of live blocks."""
    is_gpu = True

    def __init__(self):
        self.inward, self.compute, self.outward = (devices.Stream(str(i)) for i in range(3))
        self._lock = threading.Lock()
        self.now = self.peak = 0

    def count(self, size):
        with self._lock:
            self.now += size
            self.peak = max(self.peak, self.now)


class Block:

    def __init__(self, gpu, size):
        self._gpu, self._size = gpu, size
        gpu.count(size)

    def __del__(self):
        self._gpu.count(-self._size)


class Job:
    """A job that passes `passed` bytes of its inputs on as results."""
    hands_on = receives = ()
    is_backward = is_last = saves = restores = computes_loss = advances_state = False
    pack = types.SimpleNamespace(uses=(), state=(), first=0)

    def __init__(self, gpu, footprint, passed, microbatches, seconds):
        self.device = gpu
        self.spans = [(number, number + 1) for number in range(microbatches)]
        self.overlaps = self.copies_meanwhile = False
        self._footprint, self._passed, self._seconds = footprint, passed, seconds

    def _take_time(self, kind):
        time.sleep(random.random() * self._seconds[kind])

    def bring_weights(self):
        weights = Block(self.device, self._footprint.weights)
        self._take_time("in")
        return weights

    def bring(self, *_):
        inputs = [Block(self.device, self._footprint.inputs - self._passed),
                  Block(self.device, self._passed)]
        self._take_time("in")
        return inputs

    def compute(self, context, weights, brought, share, scale):
        del share, scale
        context.sums = context.sums or Block(self.device, self._footprint.sums)
        made = Block(self.device, self._footprint.results - self._passed)
        workspace = Block(self.device,
                          self._footprint.inside - self._footprint.results + self._passed)
        self._take_time("compute")
        del weights, workspace
        return [made, brought[1]]

    def take_away(self, results):
        self._take_time("out")
        del results
        return {"loss": None}

    def take_gradients(self, context):
        self._take_time("out")
        context.sums = None


def random_job(gpu, microbatches, seconds):
    made, inputs = random.randint(0, 100), random.randint(0, 100)
    passed = random.choice((0, random.randint(0, inputs)))
    footprint = Footprint(weights=random.randint(0, 100), sums=random.randint(0, 100),
                          inputs=inputs, results=made + passed,
                          inside=made + random.choice((0, random.randint(0, 100))))
    return Job(gpu, footprint, passed, microbatches, seconds), footprint


def check(case):
    gpu = Gpu()
    seconds = {kind: random.choice((0, 0.0002, 0.002)) for kind in ("in", "compute", "out")}
    made = [random_job(gpu, random.randint(1, 4), seconds) for _ in range(random.randint(1, 4))]
    jobs, footprints = [job for job, _ in made], dict(made)
    limit = random.choice((0, random.randint(200, 1500), 10000))
    peaks = memory.arrange(jobs, footprints, 0, limit)
    step = steps.Step(types.SimpleNamespace(inputs=()), 4, (), None, None)
    devices.wait_for_all([step.submit(job, following) for job, following
                          in zip(jobs, jobs[1:] + [None])])
    most = max(peak.most for peak in peaks)
    assert gpu.now == 0, f"case {case}: {gpu.now} bytes are left"
    assert gpu.peak <= most, (f"case {case}: {gpu.peak} bytes where {most} are the most; "
                              f"{[(p, footprints[p.job], vars(p.job)) for p in peaks]}")
    for stream in (gpu.inward, gpu.compute, gpu.outward):
        stream.close()
    return gpu.peak / max(most, 1)


def main():
    random.seed(int(sys.argv[1]))
    ratios = [check(case) for case in range(int(sys.argv[2]))]
    print(f"{len(ratios)} cases, peak / most {min(ratios):.2f} to {max(ratios):.2f}")


main()
