"""Neighbouring stages as pure functions: weights, state and inputs in, results out.

The functions do not read or change the model. They run on the device that is current when they are
called. Weights are plain tensors. Only gradients are summed in place, in variables whose handles
are passed in.
"""

import collections
import heapq

import keras
import tensorflow as tf
from keras.src.backend import get_keras_mask  # how Keras hands masks on: beside the tensors
from keras.src.backend import set_keras_mask

from thimble_gpu.harmony import graph as graphs
from thimble_gpu.harmony.errors import HarmonyError
from thimble_gpu.harmony.trial import unique


class Pack:
    """Stages first..last of a chain. `makes` are the Values that it hands on."""

    def __init__(self, chain, first, last, makes):
        self.first, self.last = first, last
        self.chain = chain
        self.stages = chain.stages[first:last + 1]
        self.uses = chain.uses(first, last)
        self.makes = makes
        own = unique(variable for stage in self.stages for variable in stage.variables())
        self.weights = [v for v in own if chain.is_trained(v)]
        others = [v for v in own if not chain.is_trained(v)]
        self.state = [v for v in others if id(v) in chain.changing]
        self.frozen = [v for v in others if id(v) not in chain.changing]
        self.sums = Sums(self)
        self.reached = set()  # ids of the weights that have a gradient; known after tracing
        # A regulariser counts once: in the pack that uses its weight first.
        before = {id(v) for stage in chain.stages[:first] for v in stage.variables()}
        self.regularised = [v for v in self.weights if v.regularizer and id(v) not in before]

    @property
    def name(self):
        names = self.stages[0].name, self.stages[-1].name
        return names[0] if self.first == self.last else f"{names[0]} to {names[1]}"

    def layer_names(self):
        return [call.name for stage in self.stages for call in stage.calls]

    def compute(self, weights, frozen, state, uses, masks, training):
        """The tensors by Value, the state afterwards, and the sum of the losses that layers add."""
        variables = self.weights + self.frozen + self.state
        known = {}
        for value, tensor, mask in zip(self.uses, uses, masks):
            if mask is not None:
                set_keras_mask(tensor, mask)
            known[value] = tensor
        tensors = list(weights) + list(frozen) + list(state)
        with graphs.inside(self.chain.model, training), \
                graphs.Scope(list(zip(variables, tensors)), collect_losses=True) as scope:
            for stage in self.stages:
                for call in stage.calls:
                    call.run(known, training)
            losses = list(scope.losses)
            after = [scope.get_current_value(variable) for variable in self.state]
        by_id = {id(v): tensor for v, tensor in zip(self.weights, weights)}
        losses += [v.regularizer(by_id[id(v)]) for v in self.regularised]
        total = tf.add_n([tf.reduce_sum(tf.cast(loss, keras.backend.floatx()))
                          for loss in losses]) if losses else tf.zeros([])
        return known, after, total


def forward_function(pack, training):
    """(weights, frozen, state, uses, masks) -> values, their masks, state; without training, also
    the losses that layers add"""

    def forward(weights, frozen, state, uses, masks):
        known, after, extra = pack.compute(weights, frozen, state, uses, masks, training)
        made = [known[value] for value in pack.makes]
        return {"values": made, "masks": [get_keras_mask(tensor) for tensor in made],
                "state": after, **({} if training else {"loss": extra})}

    return Function(forward, pack)


def backward_function(pack):
    """(weights, frozen, state, uses, masks, gradients of makes, scale, sums) -> gradients, loss

    Computes forward again, then backward. Adds the gradients of the weights to `sums`; returns
    those of `uses`, None where there is none. `scale` weights the losses that layers add.
    """

    def backward(weights, frozen, state, uses, masks, gradients, scale, sums):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            watch(tape, pack, weights, uses)
            known, _, extra = pack.compute(weights, frozen, state, uses, masks, True)
            share = extra * scale
        pairs = [(known[value], gradient) for value, gradient in zip(pack.makes, gradients)
                 if gradient is not None] + [(share, tf.ones_like(share))]
        targets, given = zip(*pairs)
        return {"gradients": add_gradients(tape, pack, targets, given, weights, uses, sums),
                "loss": extra}

    return Function(backward, pack)


def loss_function(pack, loss):
    """Like backward_function(), for the last pack: takes labels instead of gradients.

    -> gradients of uses, loss including those that layers add, state, predictions, then masks and
    logits
    """
    chain = pack.chain

    def last(weights, frozen, state, uses, masks, labels, scale, own_scale, sums):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            watch(tape, pack, weights, uses)
            known, after, extra = pack.compute(weights, frozen, state, uses, masks, True)
            logits = [known[value] for value in chain.logits]
            predictions = [known[value] for value in chain.outputs]
            own_masks = [get_keras_mask(each) for each in predictions]
            predictions = chain.complete(predictions, own_masks, logits)
            value = tf.cast(loss(predictions, *labels), tf.float32)
            total = value * scale + extra * own_scale
        gradients = add_gradients(tape, pack, [total], [tf.ones_like(total)], weights, uses,
                                   sums)
        return {"gradients": gradients, "loss": value + extra, "state": after,
                "predictions": predictions + own_masks + logits}

    return Function(last, pack)


class Sums:
    """Functions on the variables that hold a pack's sums of gradients.

    They are functions because eager ops with arguments on another device are unsafe on TensorFlow's
    logical CPU devices: two threads may get each other's results (seen with Fill).
    """

    def __init__(self, pack):
        types = [variable.dtype for variable in pack.weights]
        with tf.device("CPU:0"):
            # Passed as arguments: TensorFlow would keep zeros of a constant shape for ever.
            self.shapes = [tf.constant(variable.shape, tf.int32) for variable in pack.weights]

        def begin(shapes, sums):
            for total, shape, kind in zip(sums, shapes, types):
                tf.raw_ops.AssignVariableOp(resource=total,
                                            value=tf.fill(shape, tf.zeros([], kind)))

        def read(sums):
            return [tf.raw_ops.ReadVariableOp(resource=total, dtype=kind)
                    for total, kind in zip(sums, types)]

        def end(sums):
            for total, kind in zip(sums, types):
                tf.raw_ops.AssignVariableOp(resource=total, value=tf.zeros([0], kind))

        self.begin = Function(begin, pack)
        self.read = Function(read, pack)
        self.end = Function(end, pack)


def watch(tape, pack, weights, uses):
    """Watches the tensors that need gradients."""
    tape.watch(weights)
    tape.watch([tensor for value, tensor in zip(pack.uses, uses) if value.learns])


def add_gradients(tape, pack, targets, given, weights, uses, sums):
    wanted = [tensor for value, tensor in zip(pack.uses, uses) if value.learns]
    found = tape.gradient(targets, list(weights) + wanted, output_gradients=given)
    pack.reached.update(id(variable) for variable, gradient in zip(pack.weights, found)
                        if gradient is not None)
    for total, gradient in zip(sums, found):
        if isinstance(gradient, tf.IndexedSlices):
            tf.raw_ops.ResourceScatterAdd(resource=total, indices=gradient.indices,
                                          updates=gradient.values)
        elif gradient is not None:
            tf.raw_ops.AssignAddVariableOp(resource=total, value=gradient)
    rest = iter(found[len(weights):])
    return [_dense(next(rest)) if value.learns else None for value in pack.uses]


def _dense(gradient):
    return None if gradient is None else tf.convert_to_tensor(gradient)


# Ops that take little or no memory.
_LIGHT = frozenset(("Const", "ExpandDims", "Identity", "NoOp", "Placeholder", "ReadVariableOp",
                    "Reshape", "Shape", "Squeeze", "StridedSlice"))


def _in_order(function):
    """Makes the ops of a function run one after the other, in the order of the graph.

    TensorFlow runs any op that is ready: the peak of memory would vary, and gradients of weights
    would often wait while their inputs stay in memory. Ops that nothing needs, such as the gradient
    of a first convolution's input, are left out, so that TensorFlow drops them.
    """

    def ordered(*arguments):
        results = function(*arguments)
        needed = _needed(tf.compat.v1.get_default_graph().get_operations(), results)
        before = None
        for op in _sorted(needed):
            if op.type not in _LIGHT:
                if before is not None:
                    op._add_control_input(before)  # pylint: disable=protected-access
                before = op
        return results

    return ordered


def _needed(ops, results):
    """The ops that results or changes of variables depend on, in the order of the graph."""
    left = [op for op in ops if op.op_def.is_stateful]
    left += [tensor.op for tensor in tf.nest.flatten(results) if tensor is not None]
    needed = set()
    while left:
        op = left.pop()
        if op not in needed:
            needed.add(op)
            left += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
    return [op for op in ops if op in needed]


def _sorted(ops):
    """In the order of the graph, but each op after those it needs: gradients of loops are rebuilt,
    and older ops then need them."""
    ranks = _ranks(ops)
    needs = {op: {tensor.op for tensor in op.inputs} | set(op.control_inputs) for op in ops}
    users = collections.defaultdict(list)
    for op, needed in needs.items():
        for other in needed:
            users[other].append(op)
    ready = [(ranks[op], op.name, op) for op in ops if not needs[op]]
    heapq.heapify(ready)
    while ready:
        op = heapq.heappop(ready)[-1]
        yield op
        for user in users[op]:
            needs[user].discard(op)
            if not needs[user]:
                heapq.heappush(ready, (ranks[user], user.name, user))


def _ranks(ops):
    """The order of the graph, but a bias' gradient right before that of its convolution's filter:
    oneDNN fuses the two, and an op between them would make the order circular."""
    ranks = {op: number for number, op in enumerate(ops)}
    filters = {op.inputs[2].ref(): op for op in ops if op.type == "Conv2DBackpropFilter"}
    for op in ops:
        if op.type == "BiasAddGrad" and op.inputs[0].ref() in filters:
            ranks[op] = ranks[filters[op.inputs[0].ref()]] - 0.5
    return ranks


class Function:
    """A function, traced once per kind of arguments. It must not read variables outside them."""

    def __init__(self, function, pack):
        self._function = tf.function(_in_order(function), autograph=False, jit_compile=False)
        self._pack = pack
        self._traced = {}

    def __call__(self, *arguments):
        key = tuple((tuple(tensor.shape), tensor.dtype) if isinstance(tensor, tf.Tensor) else None
                    for tensor in tf.nest.flatten(arguments))
        traced = self._traced.get(key)
        if traced is None:
            traced = self._traced[key] = self._trace(arguments)
        return traced(*arguments)

    def outputs_for(self, *arguments):
        """The results for arguments with only shapes and types."""
        return self._trace(arguments).structured_outputs

    def _trace(self, arguments):
        traced = self._function.get_concrete_function(*arguments)
        for variable in traced.variables:
            raise HarmonyError(
                f"one of the layers {', '.join(self._pack.layer_names())} reads the variable "
                f"'{variable.name}', which is not one of its own: make the layer that owns it an "
                "attribute of the layer that reads it")
        return traced
