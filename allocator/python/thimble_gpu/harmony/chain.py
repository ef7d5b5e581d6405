"""A Keras model as a chain of links, of which any run of neighbours can be computed on its own.

A link is an operation with weights and those without that follow it; what comes before the first
weights belongs to them. Operations that share something which training changes, such as a BatchNorm
in two places, are in one link with all between them: a portion then finds it as in the model. What
a link makes and a later one uses is a Value: it need not be the next one, so residual connections,
several inputs and several outputs are nothing special.
"""

import dataclasses

import keras
from keras.src.backend import set_keras_mask  # how Keras hands masks on: beside the tensors

from thimble_gpu.harmony import graph as graphs
from thimble_gpu.harmony import trial
from thimble_gpu.harmony.errors import HarmonyError


@dataclasses.dataclass(eq=False)
class Link:
    """A layer of the chain, as plans count them."""
    name: str
    steps: list
    shares_state: bool = False  # whether it is one link only because of that

    def variables(self):
        return [variable for step in self.steps for variable in step.variables()]


class Chain:
    """The links of a model, its inputs and its outputs, in the order of Keras."""

    def __init__(self, model):
        self.model = model
        self.graph = graphs.of_model(model)
        self.inputs, steps, self.outputs = graphs.steps_of(self.graph)
        _check_weights(model, steps)
        found = trial.Trial(model, self.inputs, steps, self.outputs)
        self.changing, self.changing_in_inference = found.changing, found.changing_in_inference
        self.adds_loss = found.adds_loss
        self.seeds = {id(variable) for step in steps for variable in step.seeds()}
        self._trained = set(map(id, model.trainable_variables))
        self.links = _links_of(steps, trial.in_several_places(steps, self.changing))
        self._number_values()
        self._mark_what_learns()

    def is_trained(self, variable):
        return id(variable) in self._trained

    def _number_values(self):
        for number, link in enumerate(self.links):
            for step in link.steps:
                for value in step.inputs.values():
                    value.users.add(number)
                for value in step.outputs:
                    value.maker = number
        for value in self.outputs + self.logits:  # the loss, a part of the last link, uses them
            value.users.add(len(self.links) - 1)

    def _mark_what_learns(self):
        self.first_trained = len(self.links)
        for number, link in enumerate(self.links):
            for step in link.steps:
                own = any(map(self.is_trained, step.variables()))
                if own:
                    self.first_trained = min(self.first_trained, number)
                learns = own or any(value.learns for value in step.inputs.values())
                for value in step.outputs:
                    value.learns = learns and value.is_floating

    @property
    def logits(self):
        """Of those outputs that have them, in order."""
        return [value.logits for value in self.outputs if value.logits is not None]

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

    def complete(self, tensors, masks, logits):
        """Outputs with what Keras' losses and metrics look for beside them."""
        logits = iter(logits)
        for value, tensor, mask in zip(self.outputs, tensors, masks):
            if mask is not None:
                set_keras_mask(tensor, mask)
            if value.logits is not None:
                graphs.set_logits(tensor, next(logits))
        return list(tensors)

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


def _check_weights(model, steps):
    if not any(step.has_weights for step in steps):
        raise HarmonyError(f"model '{model.name}' has no layer with weights: there is nothing to "
                           "train")
    owned = {id(variable) for step in steps for variable in step.variables()}
    for variable in model.trainable_variables:
        if variable.regularizer is not None and id(variable) not in owned:
            raise HarmonyError(f"weight '{variable.path}' has a regularizer, but no layer between "
                               f"the inputs and outputs of model '{model.name}' uses it: take the "
                               "regularizer away, or the layer out of the model")


def _links_of(steps, together):
    """`together`: ranges of steps, first to last, that must not be in different links."""
    heads = [number for number, step in enumerate(steps) if step.has_weights][1:]
    borders = [0] + [head for head in heads
                     if not any(first < head <= last for first, last in together)]
    links = []
    for begin, end in zip(borders, borders[1:] + [len(steps)]):
        own = steps[begin:end]
        names = [step.name for step in own if step.has_weights] or [own[0].name]
        name = names[0] if names[0] == names[-1] else f"{names[0]} to {names[-1]}"
        links.append(Link(name, own, shares_state=len(names) > 1))
    return links
