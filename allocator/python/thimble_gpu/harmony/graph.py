"""The operations of a Keras model and of the models inside it, in an order in which they can run.

Keras has a graph for keras.Sequential, keras.Model(inputs, outputs) and keras.Function: its nodes
are calls of operations. A call of a model that has such a graph is replaced by its nodes, at any
depth. A model used in two places is walked twice, and its weights are shared. Anything with a
hand-written call() is one operation.
"""

import contextlib
import dataclasses

import keras
import tensorflow as tf
from keras.src.backend import get_keras_mask  # how Keras hands masks on: beside the tensors
from keras.src.backend import set_keras_mask
from keras.src.models.functional import Functional  # not public: what keras.Model(x, y) makes
from keras.src.models.functional import operation_fn  # and how it calls an operation
from keras.src.ops.function import Function

from thimble_gpu.harmony.errors import HarmonyError


@dataclasses.dataclass(eq=False)
class Value:
    """A tensor between operations."""
    shape: tuple  # None where only the data shows it; the first dimension is the batch
    dtype: str
    maker: int = -1  # number of the stage that makes it; -1: an input of the model
    users: set = dataclasses.field(default_factory=set)  # numbers of stages
    learns: bool = False  # whether its gradient is needed: there are trained weights before it
    is_batched: bool = True  # whether it has a row for each sample
    logits: object = None  # for an output of the model: the Value before its softmax or sigmoid

    @property
    def is_floating(self):
        return keras.backend.is_float_dtype(self.dtype)


@dataclasses.dataclass(eq=False)
class Call:
    """One call of an operation."""
    name: str  # with the names of the models around it
    operation: object
    arguments: object  # Keras' SymbolicArguments
    inputs: dict  # from id(KerasTensor) to Value
    outputs: list

    def run(self, known, training):
        """Computes the outputs and adds them to `known`, the tensors of all Values so far."""
        filled = {key: known[value] for key, value in self.inputs.items()}
        args, kwargs = self.arguments.fill_in(filled)
        results = operation_fn(self.operation, training=training)(*args, **kwargs)
        known.update(zip(self.outputs, keras.tree.flatten(results)))
        known.update({value.logits: logits_of(known[value]) for value in self.outputs
                      if value.logits is not None})

    def variables(self):
        """Variables of the operation, and those it was called with."""
        return [*getattr(self.operation, "variables", ()), *self._given_variables()]

    def seeds(self):
        """States of random number generators: to Keras these are variables, but not weights."""
        weights = set(map(id, getattr(self.operation, "weights", ())))
        own = getattr(self.operation, "variables", ())
        return [variable for variable in own if id(variable) not in weights]

    @property
    def has_weights(self):
        """Seeds of random numbers do not count."""
        return bool(getattr(self.operation, "weights", ()) or self._given_variables())

    def _given_variables(self):
        given = keras.tree.flatten((self.arguments.args, self.arguments.kwargs))
        return [each for each in given if isinstance(each, keras.Variable)]


def logits_of(tensor):
    """The logits that Keras keeps with the result of a softmax or sigmoid, or None. Its
    crossentropies use them, because small probabilities are rounded to zero."""
    return getattr(tensor, "_keras_logits", None)


def set_logits(tensor, logits):
    tensor._keras_logits = logits  # pylint: disable=protected-access


class Scope(keras.StatelessScope):
    """Gives variables the tensors passed here. If a layer assigns to a variable and then reads it,
    no gradient goes through, as with real variables."""

    def add_update(self, update):
        variable, value = update
        super().add_update((variable, tf.stop_gradient(value)))


@contextlib.contextmanager
def inside(model, training):
    """Acts as a call of the model: a layer that is called twice keeps what it added to the loss,
    and layers inside layers know whether this is training."""
    model._get_call_context().training = training  # pylint: disable=protected-access
    try:
        yield
    finally:
        model._maybe_reset_call_context()  # pylint: disable=protected-access


def of_model(model):
    """The graph of a model; refuses a model that has none."""
    if isinstance(model, keras.Sequential) and not model.built:
        raise HarmonyError(f"model '{model.name}' is not built: give it a keras.Input as its "
                           "first layer, or call build() with the shape of its input")
    graph = _graph_inside(model)
    if graph is None and type(model).call is keras.Sequential.call:
        raise HarmonyError(f"model '{model.name}' has a layer that Keras cannot call "
                           "symbolically: give it a keras.Input as its first layer to see which")
    if graph is None:
        raise HarmonyError(f"model '{model.name}' is of class {type(model).__name__}, which has "
                           "its own call(): Harmony splits models between layers and sees these "
                           "only in keras.Sequential and functional models. If call() uses only "
                           "layers and keras.ops, make it a functional model: x = "
                           "keras.Input(...); keras.Model(x, model.call(x))")
    return graph


def _graph_inside(operation):
    """The graph, if call() runs the graph and nothing else; otherwise None."""
    call = type(operation).call
    if isinstance(operation, keras.Sequential):
        sequence = operation._functional  # pylint: disable=protected-access
        return sequence if call is keras.Sequential.call else None
    if isinstance(operation, Function) and call in (Functional.call, Function.call):
        return operation
    return None


def _adds_to_call(operation):
    """Whether Keras does something around call() that is not in the graph."""
    return (getattr(operation, "supports_masking", False) or
            getattr(operation, "activity_regularizer", None) is not None)


def calls_of(graph):
    """The Values of the inputs, all Calls in order, and the Values of the outputs."""
    inputs = [_value_of(tensor) for tensor in graph.inputs]
    for tensor in graph.inputs:
        for kind in ("sparse", "ragged"):
            if getattr(tensor, kind, False):
                refuse_kind(tensor.name, kind)
    calls = []
    outputs = _walk(graph, inputs, calls, "")
    return inputs, calls, outputs


def _value_of(tensor):
    return Value(tuple(tensor.shape), tensor.dtype)


def refuse_kind(name, kind):
    raise HarmonyError(f"'{name}' hands on a {kind} tensor, but tensors between packs are dense: "
                       f"make it with {kind}=False, or convert it before the model")


def _walk(graph, feeds, calls, prefix):
    """Appends the operations of a graph; returns the Values of its outputs."""
    known = {id(tensor): value for tensor, value in zip(graph.inputs, feeds)}
    by_depth = graph._nodes_by_depth  # pylint: disable=protected-access
    for depth in sorted(by_depth, reverse=True):
        for node in by_depth[depth]:
            tensors = node.arguments.keras_tensors
            if node.is_input or not node.operation or any(id(t) not in known for t in tensors):
                continue  # as Keras does
            outputs = _call(node, [known[id(tensor)] for tensor in tensors], calls, prefix)
            known.update(zip(map(id, node.outputs), outputs))
    return [known[id(tensor)] for tensor in graph.outputs]


def _call(node, given, calls, prefix):
    """Appends the Calls of a node; returns the Values of its outputs."""
    operation, name = node.operation, prefix + node.operation.name

    def append(operation, tensors):
        inputs = dict(zip(map(id, node.arguments.keras_tensors), given))
        call = Call(name, operation, node.arguments, inputs,
                    [_value_of(tensor) for tensor in tensors])
        calls.append(call)
        return call.outputs

    graph = _graph_inside(operation)
    if graph is None or _adds_to_call(operation):
        return append(operation, node.outputs)
    entry = _Entry(operation, graph)
    feeds = given if entry.changes_nothing(node.arguments) else append(entry, graph.inputs)
    return _walk(graph, feeds, calls, f"{name}/")


class _Entry(keras.Operation):
    """What an inner model does with its arguments before its graph: puts them in order, casts and
    shapes them like its inputs."""

    def __init__(self, model, graph):
        super().__init__(name=f"{model.name}_entry")
        self._model, self._graph = model, graph
        self._converts = getattr(model, "_convert_input_args", False)

    def call(self, inputs, training=None, mask=None):
        del training  # its layers get it from the outer model
        if not isinstance(self._graph, Functional):
            return keras.tree.flatten(inputs)
        if mask is None:
            mask = keras.tree.map_structure(get_keras_mask, inputs)
        if self._converts:
            inputs = keras.tree.map_structure(self._convert, inputs)
        tensors = self._graph._standardize_inputs(inputs)  # pylint: disable=protected-access
        for tensor, own in zip(tensors, keras.tree.flatten(mask)):
            if own is not None:
                set_keras_mask(tensor, own)
        return tensors

    def _convert(self, tensor):
        model = self._model
        return model.dtype_policy.convert_input(tensor, model.autocast, model.input_dtype)

    def changes_nothing(self, arguments):
        """Whether tensors enter unchanged and in this order."""
        others = {key: each for key, each in arguments.kwargs.items()
                  if key != "training" and each is not None}
        if others or len(arguments.args) != 1:
            return False
        structure = self._graph._inputs_struct  # pylint: disable=protected-access
        given, wanted = arguments.keras_tensors, self._graph.inputs
        if len(given) != len(wanted) or _keys(arguments.args[0]) != _keys(structure):
            return False
        return all(tensor.dtype == own.dtype and len(tensor.shape) == len(own.shape) and
                   not (self._converts and keras.backend.is_float_dtype(tensor.dtype)
                        and tensor.dtype != self._model.input_dtype)
                   for tensor, own in zip(given, wanted))


def _keys(structure):
    """The keys of a dict; None for lists, tuples and single tensors, whose order is kept."""
    return sorted(structure) if isinstance(structure, dict) else None
