"""A Keras model as a chain of links, of which any run of neighbours can be computed on its own.

The operations of the model's graph are put in an order in which each comes after those it needs. A
link is an operation with weights and those without that follow it. What a link makes and a later
one uses is a Value: it need not be the next one, so residual connections, several inputs and
several outputs are nothing special. Nested models are taken apart too.
"""

import collections
import dataclasses

import keras
import tensorflow as tf
from keras.src.models.functional import Functional  # not public: what keras.Model(x, y) makes

from thimble_gpu.harmony.errors import HarmonyError


@dataclasses.dataclass(eq=False)
class Value:
    """A tensor between operations."""
    shape: tuple  # None where it is not known before there is data; the first is the batch
    dtype: str
    maker: int  # number of the link that makes it; -1: an input of the model
    users: set = dataclasses.field(default_factory=set)  # numbers of links
    learns: bool = False  # whether a gradient of it is of use: there are weights before it

    @property
    def is_floating(self):
        return keras.backend.is_float_dtype(self.dtype)

    @property
    def is_batched(self):
        return bool(self.shape) and self.shape[0] is None


@dataclasses.dataclass(eq=False)
class Step:
    """One operation of the graph."""
    operation: object
    arguments: object  # Keras' SymbolicArguments
    inputs: dict  # from id(KerasTensor) to Value
    outputs: list

    def run(self, known, training):
        """Computes the outputs; `known` has a tensor for every Value so far."""
        filled = {key: known[value] for key, value in self.inputs.items()}
        args, kwargs = self.arguments.fill_in(filled)
        if getattr(self.operation, "_call_has_training_arg", False):
            kwargs["training"] = training  # as keras.Model does
        results = self.operation(*args, **kwargs)
        known.update(zip(self.outputs, keras.tree.flatten(results)))


@dataclasses.dataclass(eq=False)
class Link:
    """A layer of the chain, as plans count them."""
    name: str
    steps: list

    def variables(self):
        return [variable for step in self.steps
                for variable in getattr(step.operation, "variables", ())]


class Chain:
    """The links of a model, its inputs and its outputs, in the order of Keras."""

    def __init__(self, model):
        self.model = model
        self.graph = graph = _graph_of(model)
        self.inputs = [Value(tuple(tensor.shape), tensor.dtype, maker=-1)
                       for tensor in graph.inputs]
        steps = []
        self.outputs = _walk(graph, self.inputs, steps)
        self.links = _links_of(steps)
        for number, link in enumerate(self.links):
            for step in link.steps:
                for value in step.inputs.values():
                    value.users.add(number)
                for value in step.outputs:
                    value.maker = number
        for value in self.outputs:  # the loss uses them, and is part of the last link
            value.users.add(len(self.links) - 1)
        if not self.links:
            raise HarmonyError(f"model '{model.name}' has no layer with weights: there is nothing "
                               "to train")
        self._mark_what_learns()
        self.changing = self._find_changing()

    def _find_changing(self):
        """Ids of the variables that training changes itself: BatchNorm's averages, random seeds.

        Frozen weights are not trainable either, but stay as they are.
        """
        others = [v for link in self.links for v in link.variables() if not v.trainable]
        changed = set()

        def compute(*inputs):
            with keras.StatelessScope([(v, v.value) for v in others]) as scope:
                before = {id(v): scope.get_current_value(v) for v in others}
                known = dict(zip(self.inputs, inputs))
                for link in self.links:
                    for step in link.steps:
                        step.run(known, training=True)
                        if uses[id(step.operation)] > 1:
                            _refuse_state_in_two_places(step.operation, before, scope)
                changed.update(id(v) for v in others
                               if scope.get_current_value(v) is not before[id(v)])

        uses = collections.Counter(id(step.operation) for link in self.links for step in link.steps)
        specs = [tf.TensorSpec(value.shape, value.dtype) for value in self.inputs]
        tf.function(compute, autograph=False).get_concrete_function(*specs)
        return changed

    def _mark_what_learns(self):
        self.first_trained = len(self.links)
        for number, link in enumerate(self.links):
            for step in link.steps:
                own = any(v.trainable for v in getattr(step.operation, "variables", ()))
                if own:
                    self.first_trained = min(self.first_trained, number)
                learns = own or any(value.learns for value in step.inputs.values())
                for value in step.outputs:
                    value.learns = learns and value.is_floating

    @property
    def can_regroup(self):
        """Whether portions may differ forward and backward: nothing depends on what is in one."""
        return not self.changing and all(value.is_batched for value in self.values())

    def flatten(self, x):
        """A batch of inputs as a list, cast and shaped as the model wants."""
        return self.graph._standardize_inputs(x)  # pylint: disable=protected-access

    def structure(self, predictions):
        """A list of outputs as the model's own call would return it."""
        packed = keras.tree.pack_sequence_as(
            self.graph._outputs_struct, predictions)  # pylint: disable=protected-access
        return packed[0] if isinstance(packed, (list, tuple)) and len(packed) == 1 else packed

    def values(self):
        return self.inputs + [value for link in self.links for step in link.steps
                              for value in step.outputs]

    def uses(self, first, last):
        """Values that links first..last need and do not make, in order."""
        return [value for value in self.values()
                if value.maker < first and any(first <= user <= last for user in value.users)]

    def boundary(self, first):
        """Values that must be kept between link first - 1 and link first."""
        return [value for value in self.values()
                if value.maker < first and any(user >= first for user in value.users)]


def _refuse_state_in_two_places(operation, before, scope):
    for variable in getattr(operation, "variables", ()):
        old = before.get(id(variable))
        if old is not None and scope.get_current_value(variable) is not old:
            raise HarmonyError(
                f"layer '{operation.name}' is used in several places and changes its variable "
                f"'{variable.name}' in each: computed pack by pack, the order would not be the "
                "model's. Give each place a layer of its own")


def _graph_of(model):
    if isinstance(model, keras.Sequential) and type(model).call is keras.Sequential.call:
        if not model.built:
            raise HarmonyError(f"model '{model.name}' is not built: give it a keras.Input as first "
                               "layer, or call build() with the shape of its input")
        graph = model._functional  # pylint: disable=protected-access
        if graph is None:
            raise HarmonyError(f"model '{model.name}' has a layer that Keras cannot call "
                               "symbolically: give it a keras.Input as first layer to see which")
        return graph
    if _is_functional(model):
        return model
    raise HarmonyError(f"model '{model.name}' is of class {type(model).__name__}, with a call() of "
                       "its own: Harmony splits models between layers and can see these only in "
                       "keras.Sequential and in functional models, keras.Model(inputs, outputs)")


def _is_functional(model):
    """Whether what it computes is its graph, and not a call() written by hand."""
    return isinstance(model, Functional) and type(model).call is Functional.call


def _walk(graph, feeds, steps):
    """Appends the operations of a graph; returns the Values of its outputs."""
    known = {id(tensor): value for tensor, value in zip(graph.inputs, feeds)}
    by_depth = graph._nodes_by_depth  # pylint: disable=protected-access
    for depth in sorted(by_depth, reverse=True):
        for node in by_depth[depth]:
            if node.is_input or not node.operation:
                continue
            inputs = {id(tensor): known[id(tensor)] for tensor in node.arguments.keras_tensors}
            inner = _inner_graph(node)
            if inner is not None:
                outputs = _walk(inner, inputs.values(), steps)
            else:
                outputs = [Value(tuple(tensor.shape), tensor.dtype, maker=-1)
                           for tensor in node.outputs]
                steps.append(Step(node.operation, node.arguments, inputs, outputs))
            known.update(zip(map(id, node.outputs), outputs))
    return [known[id(tensor)] for tensor in graph.outputs]


def _inner_graph(node):
    """The graph of a model inside the model, if the call is a plain one."""
    model = node.operation
    arguments = node.arguments
    if arguments.kwargs or len(arguments.args) != 1 or not isinstance(model, keras.Model):
        return None
    if isinstance(model, keras.Sequential):
        return model._functional  # pylint: disable=protected-access
    return model if _is_functional(model) else None


def _links_of(steps):
    links = []
    for step in steps:
        if getattr(step.operation, "weights", ()) or not links:
            links.append(Link(step.operation.name, []))
        links[-1].steps.append(step)
    # What comes before the first weights belongs to them.
    if len(links) > 1 and not any(getattr(s.operation, "weights", ()) for s in links[0].steps):
        links[1].steps[:0] = links.pop(0).steps
    return links
