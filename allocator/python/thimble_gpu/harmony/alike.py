"""Which packs do the same: then one measurement is enough for all of them."""

import json


def signature(pack):
    """A text that is the same for packs whose functions compute, and take, the same."""
    labels = {value: ["uses", number, list(value.shape), value.dtype, value.learns]
              for number, value in enumerate(pack.uses)}
    steps = []
    for link in pack.links:
        for step in link.steps:
            variables = [[list(v.shape), v.dtype, bool(v.trainable)]
                         for v in getattr(step.operation, "variables", ())]
            inputs = [labels[value] for value in step.inputs.values()]
            labels.update({value: ["made", len(steps), number]
                           for number, value in enumerate(step.outputs)})
            steps.append([type(step.operation).__qualname__, _config(step.operation), variables,
                          inputs, str(step.arguments.kwargs.keys())])
    return json.dumps([steps, [labels[value] for value in pack.makes]], default=str)


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
