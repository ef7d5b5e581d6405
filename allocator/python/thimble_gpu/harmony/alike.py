"""Finds packs that compute the same, so that one is measured for all of them."""

import json

import keras


def signature(pack, shape_of):
    """A text that is equal for packs with equal functions and arguments.

    `shape_of` returns the shape of a Value for the current batch.
    """
    labels = {value: ["uses", number, shape_of(value), value.dtype, value.learns]
              for number, value in enumerate(pack.uses)}
    calls = []
    for stage in pack.stages:
        for call in stage.calls:
            variables = [[list(v.shape), v.dtype, pack.chain.is_trained(v)]
                         for v in call.variables()]
            arguments = call.arguments.convert(lambda each, call=call: _label(each, call, labels))
            labels.update({value: ["made", len(calls), number]
                           for number, value in enumerate(call.outputs)})
            calls.append([type(call.operation).__qualname__, _config(call.operation), variables,
                          arguments])
    return json.dumps([calls, [labels[value] for value in pack.makes]], default=str)


def _label(argument, call, labels):
    """A text, because Keras would look into a list."""
    if isinstance(argument, keras.KerasTensor):
        return str(labels[call.inputs[id(argument)]])
    if hasattr(argument, "shape"):
        return f"{argument.dtype} {argument.shape}"
    return repr(argument)


def _config(operation):
    try:
        return _without_names(operation.get_config())
    except Exception:  # pylint: disable=broad-except  # a user's layer may raise anything
        return id(operation)


def _without_names(config):
    if isinstance(config, dict):
        return {key: _without_names(value) for key, value in sorted(config.items(), key=str)
                if key != "name"}
    if isinstance(config, (list, tuple)):
        return [_without_names(value) for value in config]
    return config
