"""Which packs do the same: then one measurement is enough for all of them."""

import json

import keras


def signature(pack, shape_of):
    """A text that is the same for packs whose functions compute, and take, the same.

    `shape_of` tells the shape of a Value for the batch at hand.
    """
    labels = {value: ["uses", number, shape_of(value), value.dtype, value.learns]
              for number, value in enumerate(pack.uses)}
    steps = []
    for link in pack.links:
        for step in link.steps:
            variables = [[list(v.shape), v.dtype, pack.chain.is_trained(v)]
                         for v in step.variables()]
            arguments = step.arguments.convert(lambda each, step=step: _label(each, step, labels))
            labels.update({value: ["made", len(steps), number]
                           for number, value in enumerate(step.outputs)})
            steps.append([type(step.operation).__qualname__, _config(step.operation), variables,
                          arguments])
    return json.dumps([steps, [labels[value] for value in pack.makes]], default=str)


def _label(argument, step, labels):
    """As text: Keras would look into a list."""
    if isinstance(argument, keras.KerasTensor):
        return str(labels[step.inputs[id(argument)]])
    if hasattr(argument, "shape"):
        return f"{argument.dtype} {argument.shape}"
    return repr(argument)


def _config(operation):
    try:
        return _without_names(operation.get_config())
    except Exception:  # pylint: disable=broad-except  # whatever a layer of the user's may do
        return id(operation)


def _without_names(config):
    if isinstance(config, dict):
        return {key: _without_names(value) for key, value in sorted(config.items(), key=str)
                if key != "name"}
    if isinstance(config, (list, tuple)):
        return [_without_names(value) for value in config]
    return config
