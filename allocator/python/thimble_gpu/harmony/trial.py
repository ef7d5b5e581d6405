"""Traces every operation of a model once, as for training, before anything is planned.

This finds the variables that operations change, and whether the model can be computed pack by pack:
gradients compute forward again, from the same weights and state, and must get the same results.
"""

import collections
import random

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry  # which ops have state

from thimble_gpu.harmony import graph as graphs
from thimble_gpu.harmony.errors import HarmonyError

_SAMPLES = 60  # a batch that divides by two, three and five

# Ops that have state in TensorFlow's view, but give the same results when computed again: they call
# other ops, look up or print.
_REPEATABLE = ("Assert", "Case", "Cudnn", "HashTable", "If", "LookupTable", "Print", "ReadVariable",
               "StatefulPartitionedCall", "While", "XlaCallModule")


class _CannotTrace(HarmonyError):
    pass


class Trial:
    """`changing`: ids of variables that computing changes, such as BatchNorm's averages and seeds.
    `changing_in_inference`: those that also change without training, such as seeds of layers that
    draw and ignore the result. `adds_loss`: whether any operation adds to the loss."""

    def __init__(self, model, inputs, calls, outputs):
        self._model, self._inputs, self._calls = model, inputs, calls
        self._outputs = outputs
        self._variables = unique(v for call in calls for v in call.variables())
        self.changing, self.changing_in_inference = set(), set()
        self.adds_loss = False
        try:
            self._trace(_SAMPLES)
        except _CannotTrace:  # a layer that needs another number of samples
            self._trace(None)
        self.changing |= self.changing_in_inference

    def _trace(self, samples):
        shapes = [(samples if value.shape[0] is None else value.shape[0], *value.shape[1:])
                  for value in self._inputs]
        specs = [tf.TensorSpec(shape, value.dtype) for shape, value in zip(shapes, self._inputs)]
        own = [tf.TensorSpec(variable.shape, variable.dtype) for variable in self._variables]
        ops = {}  # by Call

        def compute(tensors, values):
            self._compute(tensors, values, samples, ops)
            self._infer(tensors, values)

        traced = tf.function(compute, autograph=False).get_concrete_function(specs, own)
        library = {function.signature.name: function
                   for function in traced.graph.as_graph_def().library.function}
        for call, own_ops in ops.items():
            _refuse_foreign_variables(call, own_ops, traced)
            for op in own_ops:
                _refuse_other_results(call, op.node_def, library)

    def _compute(self, tensors, values, samples, ops):
        graph = tf.compat.v1.get_default_graph()
        pairs = list(zip(self._variables, values))
        known = dict(zip(self._inputs, tensors))
        with graphs.inside(self._model, True), \
                keras.StatelessScope(pairs, collect_losses=True) as scope:
            for call in self._calls:
                count = len(graph.get_operations())
                before = [(v, scope.get_current_value(v)) for v in unique(call.variables())]
                _run(call, known)
                ops[call] = graph.get_operations()[count:]
                changed = [v for v, old in before if scope.get_current_value(v) is not old]
                self._find_logits(call, known)
                _refuse_changed_weights(call, changed)
                self.changing.update(map(id, changed))
                for value in call.outputs:
                    _refuse_other_kinds(call, known[value])
                    value.is_batched = samples is not None and _has_rows(value, known, samples)
            self.adds_loss = bool(scope.losses)

    def _find_logits(self, call, known):
        """Makes logits results of the call: the loss may be computed in another pack."""
        for value in list(call.outputs):
            logits = graphs.logits_of(known[value])
            if logits is None or value.logits is not None or value not in self._outputs:
                continue
            value.logits = graphs.Value(value.shape, value.dtype)
            call.outputs.append(value.logits)
            known[value.logits] = logits

    def _infer(self, tensors, values):
        """Traces as for evaluate(), which computes nothing twice, so nothing is refused. Layers
        that only work in training fail there, as in Keras."""
        known = dict(zip(self._inputs, tensors))
        with graphs.inside(self._model, False), \
                keras.StatelessScope(list(zip(self._variables, values))) as scope:
            try:
                for call in self._calls:
                    call.run(known, training=False)
            except Exception:  # pylint: disable=broad-except  # whatever a layer may do
                pass
            self.changing_in_inference.update(
                id(variable) for variable, old in zip(self._variables, values)
                if scope.get_current_value(variable) is not old)


def unique(variables):
    return list({id(variable): variable for variable in variables}.values())


def in_several_places(calls, changing):
    """Ranges (first, last) of calls that share a variable which training changes."""
    places = collections.defaultdict(list)
    for number, call in enumerate(calls):
        for variable in call.variables():
            if id(variable) in changing:
                places[id(variable)].append(number)
    return [(min(numbers), max(numbers)) for numbers in places.values()]


def _run(call, known):
    drawn = _drawn()
    try:
        call.run(known, training=True)
    except Exception as error:  # pylint: disable=broad-except  # whatever a layer may do
        raise _CannotTrace(f"layer '{call.name}' cannot be computed in a tf.function, which "
                           "Harmony always uses, as Keras does without run_eagerly=True: write its "
                           f"call() with keras.ops. The error was: {error}") from error
    if _drawn() != drawn:
        _refuse_chance(call, "it draws with Python's or NumPy's random")


def _drawn():
    """State that changes when Python or NumPy draws random numbers."""
    kind, keys, *rest = np.random.get_state()
    return random.getstate(), kind, keys.tobytes(), rest


def _has_rows(value, known, samples):
    """Whether the first dimension is the samples, not for example samples times words."""
    shape = known[value].shape
    return bool(value.shape) and value.shape[0] is None and shape[0] == samples


def _refuse_other_kinds(call, tensor):
    for kind, type_ in (("sparse", tf.SparseTensor), ("ragged", tf.RaggedTensor)):
        if isinstance(tensor, type_):
            graphs.refuse_kind(call.name, kind)


def _refuse_foreign_variables(call, ops, traced):
    used = {id(tensor) for op in ops for tensor in op.inputs}
    captured = {id(outer): inner for outer, inner in traced.graph.captures}
    for variable in traced.variables:
        if id(captured.get(id(variable.handle))) not in used:
            continue
        raise HarmonyError(
            f"layer '{call.name}' reads the variable '{variable.name}', which is not one of its "
            "own: make the variable, the layer or the keras.random.SeedGenerator that owns it an "
            "attribute of the layer that reads it; instead of a SavedModel, load the .keras file")


def _refuse_changed_weights(call, changed):
    for variable in changed:
        if variable.trainable:
            raise HarmonyError(
                f"layer '{call.name}' assigns to its trainable weight '{variable.name}' while it "
                "computes, so microbatches of a batch would see different weights: compute the "
                "value from the weight without assign(), or normalise the weight with a constraint "
                "(kernel_constraint=...), which is applied after each step")


def _refuse_chance(call, why):
    raise HarmonyError(
        f"layer '{call.name}' gives different results each time ({why}), but Harmony computes a "
        "layer a second time for its gradients: apply it to the data before training, such as with "
        "dataset.map(layer); in your own layer, draw with keras.random and a "
        "keras.random.SeedGenerator that is an attribute of the layer")


def _refuse_other_results(call, node, library):
    """Checks an op, and the ops in functions that it calls."""
    definition = op_def_registry.get(node.op)
    if definition is not None and definition.is_stateful and \
            not node.op.startswith(_REPEATABLE):
        _refuse_chance(call, f"TensorFlow's op {node.op}")
    for attribute in node.attr.values():
        for called in [attribute.func, *attribute.list.func]:
            if called.name in library:
                for inner in library[called.name].node_def:
                    _refuse_other_results(call, inner, library)
