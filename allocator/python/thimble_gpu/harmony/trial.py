"""Every operation of a model is traced once, as for training, before anything is planned.

That shows what it changes, and whether it can be computed pack by pack: forward is computed again
for the gradients, from weights and state as they were, and must then come out the same.
"""

import collections
import random

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry  # which ops have state

from thimble_gpu.harmony import graph as graphs
from thimble_gpu.harmony.errors import HarmonyError

_SAMPLES = 60  # of a batch that can be halved, or cut by three or five

# Ops that TensorFlow says have state, but that give the same when they are computed again: they
# call others, look something up, or only say something.
_REPEATABLE = ("Assert", "Case", "Cudnn", "HashTable", "If", "LookupTable", "Print", "ReadVariable",
               "StatefulPartitionedCall", "While", "XlaCallModule")


class _CannotTrace(HarmonyError):
    pass


class Trial:
    """`changing`: ids of variables that computing itself changes, such as BatchNorm's averages and
    seeds of random numbers; `changing_in_inference`: those of them that change without training
    too, such as seeds of layers that draw and then do not use it. `adds_loss`: whether any
    operation adds something to the loss."""

    def __init__(self, model, inputs, steps, outputs):
        self._model, self._inputs, self._steps = model, inputs, steps
        self._outputs = outputs
        self._variables = unique(v for step in steps for v in step.variables())
        self.changing, self.changing_in_inference = set(), set()
        self.adds_loss = False
        try:
            self._trace(_SAMPLES)
        except _CannotTrace:  # a layer that wants another number of samples
            self._trace(None)
        self.changing |= self.changing_in_inference

    def _trace(self, samples):
        shapes = [(samples if value.shape[0] is None else value.shape[0], *value.shape[1:])
                  for value in self._inputs]
        specs = [tf.TensorSpec(shape, value.dtype) for shape, value in zip(shapes, self._inputs)]
        own = [tf.TensorSpec(variable.shape, variable.dtype) for variable in self._variables]
        ops = {}  # by Step

        def compute(tensors, values):
            self._compute(tensors, values, samples, ops)
            self._infer(tensors, values)

        traced = tf.function(compute, autograph=False).get_concrete_function(specs, own)
        library = {function.signature.name: function
                   for function in traced.graph.as_graph_def().library.function}
        for step, own_ops in ops.items():
            _refuse_foreign_variables(step, own_ops, traced)
            for op in own_ops:
                _refuse_other_results(step, op.node_def, library)

    def _compute(self, tensors, values, samples, ops):
        graph = tf.compat.v1.get_default_graph()
        pairs = list(zip(self._variables, values))
        known = dict(zip(self._inputs, tensors))
        with graphs.inside(self._model, True), \
                keras.StatelessScope(pairs, collect_losses=True) as scope:
            for step in self._steps:
                count = len(graph.get_operations())
                before = [(v, scope.get_current_value(v)) for v in unique(step.variables())]
                _run(step, known)
                ops[step] = graph.get_operations()[count:]
                changed = [v for v, old in before if scope.get_current_value(v) is not old]
                self._find_logits(step, known)
                _refuse_changed_weights(step, changed)
                self.changing.update(map(id, changed))
                for value in step.outputs:
                    _refuse_other_kinds(step, known[value])
                    value.is_batched = samples is not None and _has_rows(value, known, samples)
            self.adds_loss = bool(scope.losses)

    def _find_logits(self, step, known):
        """They are results of the step too: the loss may be computed in another pack."""
        for value in list(step.outputs):
            logits = graphs.logits_of(known[value])
            if logits is None or value.logits is not None or value not in self._outputs:
                continue
            value.logits = graphs.Value(value.shape, value.dtype)
            step.outputs.append(value.logits)
            known[value.logits] = logits

    def _infer(self, tensors, values):
        """As for evaluate(): nothing is computed twice there, so nothing is refused. What only
        training can compute fails there, as in Keras."""
        known = dict(zip(self._inputs, tensors))
        with graphs.inside(self._model, False), \
                keras.StatelessScope(list(zip(self._variables, values))) as scope:
            try:
                for step in self._steps:
                    step.run(known, training=False)
            except Exception:  # pylint: disable=broad-except  # whatever a layer may do
                pass
            self.changing_in_inference.update(
                id(variable) for variable, old in zip(self._variables, values)
                if scope.get_current_value(variable) is not old)


def unique(variables):
    return list({id(variable): variable for variable in variables}.values())


def in_several_places(steps, changing):
    """(first, last) step of those that share a variable which training changes."""
    places = collections.defaultdict(list)
    for number, step in enumerate(steps):
        for variable in step.variables():
            if id(variable) in changing:
                places[id(variable)].append(number)
    return [(min(numbers), max(numbers)) for numbers in places.values()]


def _run(step, known):
    drawn = _drawn()
    try:
        step.run(known, training=True)
    except Exception as error:  # pylint: disable=broad-except  # whatever a layer may do
        raise _CannotTrace(f"layer '{step.name}' cannot be computed in a tf.function, as Keras "
                           "does without run_eagerly=True and Harmony always does: write its "
                           f"call() with keras.ops. It says: {error}") from error
    if _drawn() != drawn:
        _refuse_chance(step, "it draws by Python's or NumPy's random")


def _drawn():
    """What tells whether somebody has drawn random numbers."""
    kind, keys, *rest = np.random.get_state()
    return random.getstate(), kind, keys.tobytes(), rest


def _has_rows(value, known, samples):
    """Not if the first dimension is another one, such as samples times words."""
    shape = known[value].shape
    return bool(value.shape) and value.shape[0] is None and shape[0] == samples


def _refuse_other_kinds(step, tensor):
    for kind, type_ in (("sparse", tf.SparseTensor), ("ragged", tf.RaggedTensor)):
        if isinstance(tensor, type_):
            graphs.refuse_kind(step.name, kind)


def _refuse_foreign_variables(step, ops, traced):
    used = {id(tensor) for op in ops for tensor in op.inputs}
    captured = {id(outer): inner for outer, inner in traced.graph.captures}
    for variable in traced.variables:
        if id(captured.get(id(variable.handle))) not in used:
            continue
        raise HarmonyError(
            f"layer '{step.name}' reads the variable '{variable.name}' that is not one of its own: "
            "make the variable, the layer or the keras.random.SeedGenerator that owns it an "
            "attribute of the layer that reads it; of a SavedModel, load the .keras file instead")


def _refuse_changed_weights(step, changed):
    for variable in changed:
        if variable.trainable:
            raise HarmonyError(
                f"layer '{step.name}' assigns to its trainable weight '{variable.name}' while it "
                "computes: portions of a batch would see different weights. Compute what is to be "
                "used from the weight without assign(), or normalise it by a constraint, "
                "kernel_constraint=..., which is applied after each step")


def _refuse_chance(step, why):
    raise HarmonyError(
        f"layer '{step.name}' computes something else each time ({why}), but Harmony computes a "
        "layer a second time for its gradients. Apply it to the data before training, as in "
        "dataset.map(layer); in a layer of your own, draw by keras.random, with a "
        "keras.random.SeedGenerator that is an attribute of the layer")


def _refuse_other_results(step, node, library):
    """Of an op, and of those in functions that it calls."""
    definition = op_def_registry.get(node.op)
    if definition is not None and definition.is_stateful and \
            not node.op.startswith(_REPEATABLE):
        _refuse_chance(step, f"TensorFlow's op {node.op}")
    for attribute in node.attr.values():
        for called in [attribute.func, *attribute.list.func]:
            if called.name in library:
                for inner in library[called.name].node_def:
                    _refuse_other_results(step, inner, library)
