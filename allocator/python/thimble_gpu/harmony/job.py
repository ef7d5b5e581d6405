"""A pack on a device for some microbatches: brings, computes and takes away."""

import tensorflow as tf

from thimble_gpu.harmony import device as devices


class Context:
    """What a job keeps on its device between microbatches."""

    def __init__(self):
        self.sums = None
        self.state = None


class Job:
    """Runs forward; backward, which computes forward again or restores what forward saved; or, for
    the last pack, both at once."""

    def __init__(self, kind, pack, device, spans, function, lane=0):
        self.pack = pack
        self.device = device
        self.spans = spans  # ranges of samples, adjacent and in order
        self.lane = lane  # devices that share the samples have separate BatchNorm state
        self.overlaps = False  # whether the next job's weights are brought during this one
        # Whether inputs come and results leave while another microbatch is computed. On logical CPU
        # devices this gains nothing, because the same processor computes and copies.
        self.copies_meanwhile = False
        self.is_backward = kind in ("backward", "restore", "last")
        self.is_last = kind == "last"
        self.saves, self.restores = kind == "save", kind == "restore"
        self.infers = kind == "infer"
        self.computes_loss = self.is_backward or self.infers
        self.advances_state = kind not in ("backward", "restore")
        self.hands_on = () if self.is_backward else pack.makes
        self.receives = pack.makes if self.is_backward and not self.is_last else ()
        # Values whose gradients it computes.
        self.differentiates = tuple(v for v in pack.uses if v.learns) if self.is_backward else ()
        self.function = function
        self._sums = None

    def initial_state(self, variable):
        """A variable at the start of the step. Each lane draws its own random numbers."""
        with tf.device(devices.HOST):
            value = tf.convert_to_tensor(variable.value)
            if self.lane and id(variable) in self.pack.chain.seeds:
                value += tf.cast([self.lane * 0x9E3779B1 % (1 << 31)] + [0] * (len(value) - 1),
                                 value.dtype)
            return value

    def keeps_state(self, variable, span):
        """Whether the model may take the variable from this microbatch; the last one wins. In
        evaluate() and predict(), Keras draws once per batch, so seeds advance only once."""
        return not (self.infers and id(variable) in self.pack.chain.seeds) or span == self.spans[0]

    def bring_weights(self):
        return [[self.device.bring(variable.value) for variable in variables]
                for variables in (self.pack.weights, self.pack.frozen)]

    def bring(self, pairs, labels, gradients, state, saved):
        """Copies tensors to the device; None stays None."""
        bring = self.device.bring_maybe
        uses, masks = zip(*pairs) if pairs else ((), ())
        return {"uses": [bring(tensor) for tensor in uses],
                "masks": [bring(mask) for mask in masks],
                "labels": tf.nest.map_structure(bring, labels),
                "gradients": [bring(tensor) for tensor in gradients],
                "saved": [bring(tensor) for tensor in saved],
                "state": None if state is None else [bring(tensor) for tensor in state]}

    def compute(self, context, weights, brought, share, scale):
        """`share`: part of the samples; `scale`: factor of the loss."""
        self.begin(context, weights)
        with tf.device(self.device.name):
            results = self.function(*self._arguments(context, weights, brought, share, scale))
        if self.advances_state:
            context.state = results["state"]
        return results

    def _arguments(self, context, weights, brought, share, scale):
        state = context.state if brought["state"] is None else brought["state"]
        arguments = [*weights, state, brought["uses"], brought["masks"]]
        if not self.is_backward:
            return arguments
        with tf.device(devices.HOST):
            own_scale = tf.constant(share, tf.float32) * scale
        own_scale = self.device.bring(own_scale)
        given = [brought["labels"], own_scale] if self.is_last else [brought["gradients"]]
        if self.restores:
            given.insert(0, brought["saved"])
        return arguments + given + [own_scale, context.sums]

    def take_away(self, results, but_values=(), but_gradients=()):
        """Copies results to the host; None for the Values and gradients in `but_...`."""
        away = self.device.take_away_maybe
        return {"values": [(None, None) if value in but_values else (away(tensor), away(mask))
                           for value, tensor, mask in zip(self.hands_on, results.get("values", ()),
                                                          results.get("masks", ()))],
                "gradients": [(None if value in but_gradients else away(tensor),)
                              for value, tensor in zip(self.pack.uses,
                                                       results.get("gradients", ()))],
                "state": [away(tensor) for tensor in results.get("state", ())],
                "saved": [away(tensor) for tensor in results.get("saved", ())],
                "predictions": [away(tensor) for tensor in results.get("predictions", ())],
                "loss": (away(results["loss"]),) if "loss" in results else None}

    def begin(self, context, weights):
        """Allocates the sums of gradients, if they do not exist yet."""
        if not self.is_backward or context.sums is not None:
            return
        with tf.device(self.device.name):
            if self._sums is None:  # in the rehearsal, while no other thread computes
                self._sums = [tf.Variable(tf.zeros([0], weight.dtype), trainable=False,
                                          shape=tf.TensorShape(None)) for weight in weights[0]]
            context.sums = [total.handle for total in self._sums]
            self.pack.sums.begin(self.pack.sums.shapes, context.sums)

    def take_gradients(self, context):
        """After the last microbatch: moves the gradients of the weights to the host."""
        if not self.is_backward:
            return []
        with tf.device(self.device.name):
            totals = self.pack.sums.read(context.sums)
        taken = [self.device.take_away(total) for total, variable in zip(totals, self.pack.weights)
                 if id(variable) in self.pack.reached]
        del totals
        self.end(context)
        return taken

    def end(self, context):
        """Frees the sums of gradients."""
        if context.sums is not None:
            with tf.device(self.device.name):
                self.pack.sums.end(context.sums)
            context.sums = None
