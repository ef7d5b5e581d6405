"""Some neighbouring links as pure functions: weights, state and inputs in, results out.

Nothing of the model is read or changed here. The functions run on the device that is current when
they are called. Weights are plain tensors; only gradients are summed up in place, in variables, of
which the functions get the handles.
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
    """Links first..last of a chain. `makes` are the Values that are handed on."""

    def __init__(self, chain, first, last, makes):
        self.first, self.last = first, last
        self.chain = chain
        self.links = chain.links[first:last + 1]
        self.uses = chain.uses(first, last)
        self.makes = makes
        own = unique(variable for link in self.links for variable in link.variables())
        self.weights = [v for v in own if chain.is_trained(v)]
        others = [v for v in own if not chain.is_trained(v)]
        self.state = [v for v in others if id(v) in chain.changing]
        self.frozen = [v for v in others if id(v) not in chain.changing]
        self.sums = Sums(self)
        self.reached = set()  # ids of the weights that have a gradient; known after tracing
        # Where each weight is first used, so that its regulariser counts once.
        before = {id(v) for link in chain.links[:first] for v in link.variables()}
        self.regularised = [v for v in self.weights if v.regularizer and id(v) not in before]

    @property
    def name(self):
        names = self.links[0].name, self.links[-1].name
        return names[0] if self.first == self.last else f"{names[0]} to {names[1]}"

    def layer_names(self):
        return [step.name for link in self.links for step in link.steps]

    def compute(self, weights, frozen, state, uses, masks, training):
        """Values by name, the state afterwards, and the sum of the links' own losses."""
        variables = self.weights + self.frozen + self.state
        known = {}
        for value, tensor, mask in zip(self.uses, uses, masks):
            if mask is not None:
                set_keras_mask(tensor, mask)
            known[value] = tensor
        tensors = list(weights) + list(frozen) + list(state)
        with graphs.inside(self.chain.model, training), \
                graphs.Scope(list(zip(variables, tensors)), collect_losses=True) as scope:
            for link in self.links:
                for step in link.steps:
                    step.run(known, training)
            losses = list(scope.losses)
            after = [scope.get_current_value(variable) for variable in self.state]
        by_id = {id(v): tensor for v, tensor in zip(self.weights, weights)}
        losses += [v.regularizer(by_id[id(v)]) for v in self.regularised]
        total = tf.add_n([tf.reduce_sum(tf.cast(loss, keras.backend.floatx()))
                          for loss in losses]) if losses else tf.zeros([])
        return known, after, total


def forward_function(pack, training):
    """(weights, frozen, state, uses, masks) -> values, their masks, state; without training, also
    the links' own losses"""

    def forward(weights, frozen, state, uses, masks):
        known, after, extra = pack.compute(weights, frozen, state, uses, masks, training)
        made = [known[value] for value in pack.makes]
        return {"values": made, "masks": [get_keras_mask(tensor) for tensor in made],
                "state": after, **({} if training else {"loss": extra})}

    return Function(forward, pack)


def backward_function(pack):
    """(weights, frozen, state, uses, masks, gradients of makes, scale, sums) -> gradients, loss

    Computes forward again, then backward, and adds the gradients of the weights to `sums`; returns
    those of `uses`, None where there is none. `scale` is the share of the links' own losses.
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
    """As backward_function(), for the last pack: with labels and the loss instead of gradients.

    -> gradients of uses, loss with the links' own ones, state, predictions, then masks and logits
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
    """Functions on the variables in which the gradients of a pack are summed up.

    Functions, because eager ops with arguments elsewhere are not safe on TensorFlow's logical CPU
    devices: from two threads at once, each may get the other's results (seen with Fill).
    """

    def __init__(self, pack):
        types = [variable.dtype for variable in pack.weights]
        with tf.device("CPU:0"):
            # Arguments: TensorFlow would keep zeros of a constant shape for ever.
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
    """Watches what gradients are wanted of."""
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


# Ops that take no memory of their own, or next to none.
_LIGHT = frozenset(("Const", "ExpandDims", "Identity", "NoOp", "Placeholder", "ReadVariableOp",
                    "Reshape", "Shape", "Squeeze", "StridedSlice"))


def _in_order(function):
    """Lets the ops of a function run one after the other, as they were written.

    TensorFlow runs what is ready. The peak of memory would be another one each time, and gradients
    of weights would often wait while their inputs are kept. Ops that nothing needs, such as the
    gradient of a first convolution's input, are left out: TensorFlow drops them then.
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
    """Those that results or effects on variables come from, as they were made."""
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
    """Each after those it needs; otherwise as they were made. Gradients of loops are made anew, and
    older ops then need them."""
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
    """As they were made; but a bias' gradient comes right before that of the convolution's filter.
    oneDNN makes one op of the two, and with another in between, the order would be a circle."""
    ranks = {op: number for number, op in enumerate(ops)}
    filters = {op.inputs[2].ref(): op for op in ops if op.type == "Conv2DBackpropFilter"}
    for op in ops:
        if op.type == "BiasAddGrad" and op.inputs[0].ref() in filters:
            ranks[op] = ranks[filters[op.inputs[0].ref()]] - 0.5
    return ranks


class Function:
    """Traced once for each kind of arguments. Refuses to read variables that are not arguments."""

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
        """Results for arguments of which only shapes and types are known."""
        return self._trace(arguments).structured_outputs

    def _trace(self, arguments):
        traced = self._function.get_concrete_function(*arguments)
        for variable in traced.variables:
            raise HarmonyError(
                f"one of the layers {', '.join(self._pack.layer_names())} reads the variable "
                f"'{variable.name}' that is not one of its own: make the layer that owns it an "
                "attribute of the layer that reads it")
        return traced
