"""One training step: submits the jobs of a plan to the streams of the devices.

Tensors between two packs go through the host, unless the next device already has room (routes.py).
So a device holds only its own pack, and a residual connection takes no device memory while it
waits. A step submits all its jobs at once; a job waits for the futures of the jobs it needs. Waits
also bound the memory:
  - the inputs of microbatch i are brought after microbatch i - 2 is computed, so that one is in use
    while the next is ready; and microbatch i is computed after the results of microbatch i - 2 have
    left. If that does not fit, or gains nothing (Job.copies_meanwhile is false), the inputs of
    microbatch i are brought after the results of microbatch i - 1 have left;
  - the weights of the next job are brought during this job only if both fit (Job.overlaps);
    otherwise after everything of this job has left. The next job's inputs wait for that too, unless
    both jobs have room for copies meanwhile.
"""

import tensorflow as tf

from thimble_gpu.harmony import device as devices
from thimble_gpu.harmony.job import Context
from thimble_gpu.harmony.routes import Handover
from thimble_gpu.harmony.routes import NOTHING
from thimble_gpu.harmony.routes import Traffic


class Pieces:
    """A Value for all samples, as a future for each microbatch's range of samples."""

    def __init__(self):
        self._futures = {}

    def put(self, span, future):
        self._futures[span] = future

    def get(self, span):
        """Waits for a range of samples, on the host. Joins or cuts pieces if the ranges differ."""
        if span in self._futures:
            return self._futures[span].peek()
        first, last = span
        parts = [_cut(future.peek(), max(first, start) - start, min(last, end) - start)
                 for (start, end), future in sorted(self._futures.items(), key=lambda item: item[0])
                 if start < last and end > first]
        with tf.device(devices.HOST):
            return tuple(None if each[0] is None else tf.concat(each, 0) for each in zip(*parts))


def _cut(tensors, first, last):
    with tf.device(devices.HOST):
        return tuple(None if tensor is None else tensor[first:last] for tensor in tensors)


def ready(value):
    future = devices.Future()
    future.set(value)
    return future


def size_of_batch(inputs):
    """The number of samples. Inputs that are None were left out: Keras has optional inputs."""
    return int(next(tensor for tensor in inputs if tensor is not None).shape[0])


class Step:
    """The tensors of one step, all on the host, and the jobs that make them."""

    def __init__(self, chain, batch, inputs, labels, scale, routes=None, traffic=None):
        self.batch = batch
        self._traffic = traffic or Traffic()
        self._routes = routes or {}
        self._handovers = {}  # by receiver and span
        self._scale = scale  # of the loss, for mixed precision
        self._whole = (0, batch)
        self._values = {}
        for value, tensor in zip(chain.inputs, inputs):
            self._pieces(value).put(self._whole, ready((tensor, None)))
        self._labels = labels
        self._gradients = {}  # Value: Pieces of each pack that uses it, by its first stage
        self._saved = {}  # by first stage and range of samples: what forward saves for backward
        self._states = {}  # by id of a variable and range of samples: its value before that range
        self.final_states = {}  # futures by lane and id of a variable
        self.losses = []  # futures of (loss of a microbatch, its share)
        self.predictions = Pieces()
        self._lanes = {}  # by device
        self._results = {}  # futures by job and span

    def _pieces(self, value):
        return self._values.setdefault(value, Pieces())

    def pair(self, value, span):
        """Waits for some samples of a Value and its mask, on the host."""
        return self._values[value].get(span)

    def loss(self):
        """The loss of the batch: microbatches count by their share of the samples."""
        return sum(float(value) * share for value, share in (part.peek() for part in self.losses))

    def results(self, job, span):
        """The future with the results of a microbatch."""
        return self._results[job, span]

    # --- Submitting -------------------------------------------------------------------------------

    def submit(self, job, following):
        """Puts a job into the streams; `following` is the next one on its device, or None."""
        device = job.device
        lane = self._lanes.setdefault(device, _Lane())
        weights = lane.weights or self._submit_weights(job, lane.end)
        lane.weights = None
        context = Context()
        for number, span in enumerate(job.spans):
            room = lane.computed[0] if job.copies_meanwhile else lane.left[1]
            brought = device.inward.submit(self.bring, job, span, room)
            computed = device.compute.submit(self._compute, job, span, context, weights, brought,
                                             lane.left[0])
            handover = self._submit_handover(job, span, computed)
            left = device.outward.submit(self._take_away, job, span, computed, handover)
            self.announce(job, span, left)
            lane.computed = [lane.computed[1], computed]
            lane.left = [lane.left[1], left]
            if following is not None and job.overlaps and number == min(1, len(job.spans) - 1):
                lane.weights = self._submit_weights(following, lane.end)
        lane.end = device.outward.submit(self._leave, job, context, computed)
        if not (job.copies_meanwhile and job.overlaps and following.copies_meanwhile):
            lane.computed = lane.left = [lane.end, lane.end]
        return lane.end

    def _submit_handover(self, job, span, computed):
        route = self._routes.get(job)
        if route is None or span not in route.receiver.spans:
            return None
        handover = self._handovers[route.receiver, span] = Handover(route)
        handover.handed = job.device.outward.submit(self._hand_over, job, computed, handover)
        return handover

    def _submit_weights(self, job, end):
        return job.device.inward.submit(self._bring_weights, job, end)

    def announce(self, job, span, future):
        """Registers where the results of a microbatch will be, before they exist."""
        self._results[job, span] = future
        for number, value in enumerate(job.hands_on):
            self._pieces(value).put(span, _Part(future, "values", number))
        for number, value in enumerate(job.pack.uses if job.is_backward else ()):
            if value.learns:
                users = self._gradients.setdefault(value, {})
                pieces = users.setdefault(job.pack.first, Pieces())
                pieces.put(span, _Part(future, "gradients", number))
        if job.advances_state:
            following = next((s for s in job.spans if s[0] == span[1]), None)
            for number, variable in enumerate(job.pack.state):
                part = _Part(future, "state", number)
                self._states[id(variable), following] = part
                if job.keeps_state(variable, span):
                    self.final_states[job.lane, id(variable)] = part
        if job.saves:
            self._saved[job.pack.first, span] = _Part(future, "saved", None)
        if job.computes_loss:
            self.losses.append(_Part(future, "loss", None))
        if job.is_last:
            self.predictions.put(span, _Part(future, "predictions", None))

    # --- Jobs: each runs in a stream --------------------------------------------------------------

    def _bring_weights(self, job, end):
        end.wait()
        return job.bring_weights()

    def bring(self, job, span, before):
        """Waits for `before`, then brings all that a microbatch needs to the device."""
        before.wait()
        handover = self._handovers.get((job, span))
        arrived = handover.ask() if handover else NOTHING
        pairs = [(None, None) if value in arrived.values else self._values[value].get(span)
                 for value in job.pack.uses]
        labels = self._cut_labels(span) if job.is_last else None
        gradients = [None if value in arrived.gradients else self._gradient(value, span)
                     for value in job.receives]
        saved = self._saved[job.pack.first, span].peek() if job.restores else ()
        brought = job.bring(pairs, labels, gradients, self._state_before(job, span), saved)
        self._traffic.add(arrived, gradients + [pair[0] for value, pair in zip(job.pack.uses, pairs)
                                                if value.maker >= 0])
        arrived.add_to(job, brought)
        return brought

    def _state_before(self, job, span):
        if job.advances_state and span != job.spans[0]:
            return None  # the state stays on the device between microbatches
        return [job.initial_state(variable) if (id(variable), span) not in self._states
                else self._states[id(variable), span].peek() for variable in job.pack.state]

    def _gradient(self, value, span):
        """The sum of the gradients from all users of a Value; None if there are none."""
        found = [pieces.get(span)[0] for pieces in self._gradients.get(value, {}).values()]
        found = [tensor for tensor in found if tensor is not None]
        if not found:
            return None
        with tf.device(devices.HOST):
            return found[0] if len(found) == 1 else tf.add_n(found)

    def _cut_labels(self, span):
        if span == self._whole:
            return self._labels
        with tf.device(devices.HOST):
            return tf.nest.map_structure(
                lambda tensor: None if tensor is None else tensor[span[0]:span[1]], self._labels)

    def _compute(self, job, span, context, weights, brought, left):
        left.wait()
        held = weights.take() if span == job.spans[-1] else weights.peek()
        return job.compute(context, held, brought.take(),
                           share=(span[1] - span[0]) / self.batch, scale=self._scale)

    def _hand_over(self, job, computed, handover):
        return handover.send(job, computed.peek())

    def _take_away(self, job, span, computed, handover):
        results = job.take_away(computed.take(), *(handover.not_for_the_host() if handover else ()))
        if results["loss"] is not None:
            results["loss"] += ((span[1] - span[0]) / self.batch,)
        return results

    def _leave(self, job, context, computed):
        computed.wait()
        return job.take_gradients(context)


class _Lane:
    """The latest futures of a device, for which the next ones wait."""

    def __init__(self):
        self.computed = [ready(None), ready(None)]  # the last two microbatches
        self.left = [ready(None), ready(None)]
        self.end = ready(None)  # done when nothing of the last job is on the device
        self.weights = None  # of the next job, if they are already coming


class _Part:
    """A future of one of a job's results."""

    def __init__(self, future, name, number):
        self._future, self._name, self._number = future, name, number

    def peek(self):
        results = self._future.peek()[self._name]
        if self._number is None:
            return results
        return results[self._number]
