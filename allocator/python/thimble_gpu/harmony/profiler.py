"""Measures each stage of a chain on a device: seconds and bytes, by microbatch size.

Each stage is rehearsed as a pack of its own, forward and backward with recomputation. Stages with
the same layers and shapes are measured once. Sizes that do not fit are extrapolated from smaller
ones.
"""

import csv
import dataclasses
import math
import time

import keras
import tensorflow as tf

from thimble_gpu.harmony import device as devices
from thimble_gpu.harmony import rehearsal
from thimble_gpu.harmony import step as steps
from thimble_gpu.harmony.alike import signature
from thimble_gpu.harmony.functions import Functions
from thimble_gpu.harmony.job import Job
from thimble_gpu.harmony.plans import Plan
from thimble_gpu.harmony.plans import Task

COLUMNS = ("ubatch", "layer", "weight_bytes", "fwd_gpu_s", "bwd_gpu_s", "upd_cpu_s",
           "fwd_mem_bytes", "bwd_mem_bytes", "x_elems")
_FORWARD_PART = 1 / 3  # of the time of both, if only that is known


@dataclasses.dataclass
class Row:
    """One line of a profile, with the names of its columns."""
    ubatch: int
    layer: int
    weight_bytes: int
    fwd_gpu_s: float
    bwd_gpu_s: float
    upd_cpu_s: float
    fwd_mem_bytes: int
    bwd_mem_bytes: int
    x_elems: int


def write(rows, path):
    with open(path, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(COLUMNS)
        lines.writerows(dataclasses.astuple(row) for row in rows)


def measure(chain, device, loss, inputs, labels, sizes, update_rate):
    """Rows for every microbatch size and stage; `inputs` and `labels` have enough samples."""
    rows = []
    known = {}  # footprints and results by kind, size and signature
    for size in sorted(sizes):
        profiler = _Profiler(chain, device, loss, size, known)
        try:
            rows += profiler.rows(_first(inputs, size), _first(labels, size), update_rate)
        except tf.errors.ResourceExhaustedError:
            if len(rows) < 2 * len(chain.stages):
                raise
            rows += extrapolate(rows, size)
    return rows


def _first(tensors, size):
    with tf.device(devices.HOST):
        return tf.nest.map_structure(
            lambda tensor: None if tensor is None else tensor[:size], tensors)


def update_rate(optimizer, megabytes=4):
    """The seconds per byte of weights that a copy of the optimizer takes on this host."""
    with tf.device(devices.HOST):
        copy = type(optimizer).from_config(optimizer.get_config())
        variable = keras.Variable(tf.zeros([megabytes << 18]), dtype="float32")
        copy.build([variable])
        apply = tf.function(lambda gradient: copy.apply([gradient], [variable]), autograph=False)
        gradient = tf.ones(variable.shape)
        apply(gradient)
        start = time.perf_counter()
        apply(gradient)
        return (time.perf_counter() - start) / (megabytes << 20)


class _Profiler:
    """Measures all stages at one size."""

    def __init__(self, chain, device, loss, size, known):
        self._chain, self._device, self._size, self._known = chain, device, size, known
        count = len(chain.stages)
        single = [Task(number, number, 0, (size,)) for number in range(count)]
        self._plan = Plan("pp", 1, size, tuple(single[:-1]), tuple(reversed(single)))
        self._functions = Functions(chain, self._plan, loss)

    def rows(self, inputs, labels, rate):
        step = steps.Step(self._chain, self._size, inputs, labels, tf.ones([]))
        forward = {task.first: self._rehearse(step, "forward", task) for task in self._plan.forward}
        last = self._plan.backward[0]
        backward = {task.first: self._rehearse(step, "last" if task is last else "backward", task)
                    for task in self._plan.backward}
        return [self._row(step, number, forward.get(number), backward[number], rate)
                for number in range(len(self._chain.stages))]

    def _rehearse(self, step, kind, task):
        pack, function = self._functions.of(kind, task)
        job = Job(kind, pack, self._device, [(0, self._size)], function)
        key = (kind, self._size, signature(pack, lambda value: self._shape(step, value)))
        if key not in self._known:
            footprint, = rehearsal.rehearse(step, [job], runs=2).values()
            self._known[key] = footprint, step.results(job, job.spans[0])
        else:
            step.announce(job, job.spans[0], self._known[key][1])
        return self._known[key][0]

    def _row(self, step, number, forward, backward, rate):
        if forward is None:  # the last stage runs forward and backward at once
            forward = dataclasses.replace(backward, sums=0,
                                          seconds=backward.seconds * _FORWARD_PART)
        weights = sum(4 * v.value.shape.num_elements()
                      for v in {id(v): v for v in self._chain.stages[number].variables()
                                if id(v) not in self._chain.changing}.values())
        elements = sum(self._elements(step, value) for value in self._chain.boundary(number))
        # Backward computes forward too. If it took less, another process disturbed the forward.
        return Row(self._size, number, weights, forward.seconds,
                   max(forward.seconds, backward.seconds), weights * rate,
                   _total(forward), max(_total(forward), _total(backward)), elements)

    def _shape(self, step, value):
        tensor = step.pair(value, (0, self._size))[0]
        return None if tensor is None else tensor.shape.as_list()

    def _elements(self, step, value):
        """Elements of 4 bytes for all samples. A value without a batch counts once per sample."""
        tensor = step.pair(value, (0, self._size))[0]
        if tensor is None:
            return 0
        one = tensor.shape.num_elements() * tensor.dtype.size / 4
        return math.ceil(one / self._size if value.is_batched else one) * self._size


def _total(footprint):
    return footprint.weights + footprint.sums + footprint.inputs + footprint.inside


def extrapolate(rows, size):
    """Rows for a larger size, extrapolated from the two largest that were measured."""
    layers = {}
    for row in rows:
        layers.setdefault(row.layer, []).append(row)
    return [_on_line(known, size) for known in layers.values()
            if len(known) > 1 and known[-1].ubatch < size]


def _on_line(known, size):
    low, high = known[-2:]
    part = (size - low.ubatch) / (high.ubatch - low.ubatch)

    def at(name):
        first, second = getattr(low, name), getattr(high, name)
        return max(second, type(first)(first + part * (second - first)))

    row = Row(size, low.layer, *(at(name) for name in COLUMNS[2:]))
    row.bwd_gpu_s = max(row.fwd_gpu_s, row.bwd_gpu_s)
    row.bwd_mem_bytes = max(row.fwd_mem_bytes, row.bwd_mem_bytes)
    return row
