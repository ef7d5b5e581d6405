"""One training step: the jobs of a plan, submitted to the streams of the devices.

Tensors between two packs go through the host, unless the next one has room already (routes.py): so
a device holds no more than its own pack, and a residual connection costs nothing while it waits. A
step puts all its jobs into the streams at once; a job waits for the cells of those it needs. What
keeps memory bounded are waits too:
  - inputs of portion i are brought when portion i - 2 is computed, so that one is used while one is
    ready; and portion i is computed when the results of portion i - 2 have left. Where that does
    not fit, or brings nothing (Job.copies_meanwhile), inputs of portion i are brought when the
    results of portion i - 1 have left;
  - weights of the next job are brought during this one only if both fit (Job.overlaps); otherwise
    when all of this one has left. Its inputs wait for that too, unless both jobs have room for
    copies meanwhile.
"""

import tensorflow as tf

from thimble_gpu.harmony import device as devices
from thimble_gpu.harmony.job import Context
from thimble_gpu.harmony.routes import Handover
from thimble_gpu.harmony.routes import NOTHING
from thimble_gpu.harmony.routes import Traffic


class Pieces:
    """A Value for all samples, in portions: each a range of samples and a cell."""

    def __init__(self):
        self._cells = {}

    def put(self, span, cell):
        self._cells[span] = cell

    def get(self, span):
        """Waits for it; on the host. A portion that was not put together is cut out of others."""
        if span in self._cells:
            return self._cells[span].peek()
        first, last = span
        parts = [_cut(cell.peek(), max(first, start) - start, min(last, end) - start)
                 for (start, end), cell in sorted(self._cells.items(), key=lambda item: item[0])
                 if start < last and end > first]
        with tf.device(devices.HOST):
            return tuple(None if each[0] is None else tf.concat(each, 0) for each in zip(*parts))


def _cut(tensors, first, last):
    with tf.device(devices.HOST):
        return tuple(None if tensor is None else tensor[first:last] for tensor in tensors)


def ready(value):
    cell = devices.Cell()
    cell.set(value)
    return cell


def size_of_batch(inputs):
    """Those that are None were left out: Keras has optional ones."""
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
        self._gradients = {}  # Value: Pieces of each pack that uses it, by its first link
        self._saved = {}  # by first link and range of samples: what backward will need of forward
        self._states = {}  # (id of a variable, range of samples): before that was computed
        self.final_states = {}  # (lane, id of a variable): cell
        self.losses = []  # cells: (loss of a portion, its share)
        self.predictions = Pieces()
        self._lanes = {}  # by device
        self._results = {}  # cells by job and span

    def _pieces(self, value):
        return self._values.setdefault(value, Pieces())

    def pair(self, value, span):
        """A Value of some samples and its mask, on the host; waits for them."""
        return self._values[value].get(span)

    def loss(self):
        """Of the batch: that of each portion counts by its share of the samples."""
        return sum(float(value) * share for value, share in (part.peek() for part in self.losses))

    def results(self, job, span):
        """The cell with the results of a portion."""
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

    def announce(self, job, span, cell):
        """Says where the results of a portion will be, before they are there."""
        self._results[job, span] = cell
        for number, value in enumerate(job.hands_on):
            self._pieces(value).put(span, _Part(cell, "values", number))
        for number, value in enumerate(job.pack.uses if job.is_backward else ()):
            if value.learns:
                users = self._gradients.setdefault(value, {})
                pieces = users.setdefault(job.pack.first, Pieces())
                pieces.put(span, _Part(cell, "gradients", number))
        if job.advances_state:
            following = next((s for s in job.spans if s[0] == span[1]), None)
            for number, variable in enumerate(job.pack.state):
                part = _Part(cell, "state", number)
                self._states[id(variable), following] = part
                if job.keeps_state(variable, span):
                    self.final_states[job.lane, id(variable)] = part
        if job.saves:
            self._saved[job.pack.first, span] = _Part(cell, "saved", None)
        if job.tells_loss:
            self.losses.append(_Part(cell, "loss", None))
        if job.is_last:
            self.predictions.put(span, _Part(cell, "predictions", None))

    # --- Jobs: each runs in a stream --------------------------------------------------------------

    def _bring_weights(self, job, end):
        end.wait()
        return job.bring_weights()

    def bring(self, job, span, before):
        """All that a portion needs, on the device; when the cell `before` is done."""
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
            return None  # it stays on the device from one portion to the next
        return [job.initial_state(variable) if (id(variable), span) not in self._states
                else self._states[id(variable), span].peek() for variable in job.pack.state]

    def _gradient(self, value, span):
        """The sum of what the users of a Value say; None if none of them says anything."""
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
    """The cells of a device that the next ones wait for."""

    def __init__(self):
        self.computed = [ready(None), ready(None)]  # the last two portions
        self.left = [ready(None), ready(None)]
        self.end = ready(None)  # of the last job: when nothing of it is on the device
        self.weights = None  # of the next job, if they are brought already


class _Part:
    """One of the results of a job, as a cell."""

    def __init__(self, cell, name, number):
        self._cell, self._name, self._number = cell, name, number

    def peek(self):
        results = self._cell.peek()[self._name]
        if self._number is None:
            return results
        return results[self._number]
