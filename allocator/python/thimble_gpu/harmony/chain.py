"""A Keras model as a chain of stages; any run of neighbouring stages can be computed on its own.

A stage is an operation with weights and the operations without weights that follow it. Operations
before the first weights belong to the first stage. Operations that share state which training
changes, such as a BatchNorm in two places, are one stage with everything between them, so that each
microbatch changes the state in the model's order. A Value is what a stage makes and a later one
uses. That need not be the next stage, so residual connections and several inputs or outputs need no
special treatment.
"""

import dataclasses

import keras
from keras.src.backend import set_keras_mask  # how Keras hands masks on: beside the tensors

from thimble_gpu.harmony import graph as graphs
from thimble_gpu.harmony import trial
from thimble_gpu.harmony.errors import HarmonyError


@dataclasses.dataclass(eq=False)
class Stage:
    """A layer of the chain, as plans count them."""
    name: str
    calls: list
    shares_state: bool = False  # whether shared state has joined several stages

    def variables(self):
        return [variable for call in self.calls for variable in call.variables()]


class Chain:
    """The stages of a model, its inputs and its outputs, in the order of Keras."""

    def __init__(self, model):
        self.model = model
        self.graph = graphs.of_model(model)
        self.inputs, calls, self.outputs = graphs.calls_of(self.graph)
        _check_weights(model, calls)
        found = trial.Trial(model, self.inputs, calls, self.outputs)
        self.changing, self.changing_in_inference = found.changing, found.changing_in_inference
        self.adds_loss = found.adds_loss
        self.seeds = {id(variable) for call in calls for variable in call.seeds()}
        self._trained = set(map(id, model.trainable_variables))
        self.stages = _stages_of(calls, trial.in_several_places(calls, self.changing))
        self._number_values()
        self._mark_what_learns()

    def is_trained(self, variable):
        return id(variable) in self._trained

    def _number_values(self):
        for number, stage in enumerate(self.stages):
            for call in stage.calls:
                for value in call.inputs.values():
                    value.users.add(number)
                for value in call.outputs:
                    value.maker = number
        for value in self.outputs + self.logits:  # the loss is part of the last stage
            value.users.add(len(self.stages) - 1)

    def _mark_what_learns(self):
        self.first_trained = len(self.stages)
        for number, stage in enumerate(self.stages):
            for call in stage.calls:
                own = any(map(self.is_trained, call.variables()))
                if own:
                    self.first_trained = min(self.first_trained, number)
                learns = own or any(value.learns for value in call.inputs.values())
                for value in call.outputs:
                    value.learns = learns and value.is_floating

    @property
    def logits(self):
        """The logits of outputs that have them, in order."""
        return [value.logits for value in self.outputs if value.logits is not None]

    @property
    def can_regroup(self):
        """Whether forward and backward may use different microbatches."""
        return not self.changing and all(value.is_batched for value in self.values())

    def flatten(self, x):
        """A batch of inputs as a list, cast and shaped for the model."""
        return self.graph._standardize_inputs(x)  # pylint: disable=protected-access

    def structure(self, predictions):
        """A list of outputs in the structure that calling the model returns."""
        packed = keras.tree.pack_sequence_as(
            self.graph._outputs_struct, predictions)  # pylint: disable=protected-access
        return packed[0] if isinstance(packed, (list, tuple)) and len(packed) == 1 else packed

    def complete(self, tensors, masks, logits):
        """The outputs with the masks and logits that Keras' losses and metrics look for."""
        logits = iter(logits)
        for value, tensor, mask in zip(self.outputs, tensors, masks):
            if mask is not None:
                set_keras_mask(tensor, mask)
            if value.logits is not None:
                graphs.set_logits(tensor, next(logits))
        return list(tensors)

    def values(self):
        return self.inputs + [value for stage in self.stages for call in stage.calls
                              for value in call.outputs]

    def uses(self, first, last):
        """The Values that stages first..last need and do not make, in order."""
        return [value for value in self.values()
                if value.maker < first and any(first <= user <= last for user in value.users)]

    def boundary(self, first):
        """The Values that are alive between stage first - 1 and stage first."""
        return [value for value in self.values()
                if value.maker < first and any(user >= first for user in value.users)]


def _check_weights(model, calls):
    if not any(call.has_weights for call in calls):
        raise HarmonyError(f"model '{model.name}' has no layer with weights, so there is "
                           "nothing to train: add a layer with weights")
    owned = {id(variable) for call in calls for variable in call.variables()}
    for variable in model.trainable_variables:
        if variable.regularizer is not None and id(variable) not in owned:
            raise HarmonyError(f"weight '{variable.path}' has a regularizer, but no layer between "
                               f"the inputs and outputs of model '{model.name}' uses it: remove "
                               "the regularizer, or the layer from the model")


def _stages_of(calls, together):
    """`together`: ranges of calls, first to last, that must be in one stage."""
    heads = [number for number, call in enumerate(calls) if call.has_weights][1:]
    borders = [0] + [head for head in heads
                     if not any(first < head <= last for first, last in together)]
    stages = []
    for begin, end in zip(borders, borders[1:] + [len(calls)]):
        own = calls[begin:end]
        names = [call.name for call in own if call.has_weights] or [own[0].name]
        name = names[0] if names[0] == names[-1] else f"{names[0]} to {names[-1]}"
        stages.append(Stage(name, own, shares_state=len(names) > 1))
    return stages
