"""Trains a small model for every class of keras.layers, by Harmony and as Keras does. Prints JSON.

usage: layer_case.py PART PARTS, or layer_case.py NAME...
"""

import json
import os
import re
import sys
import tempfile

from thimble_gpu import harmony

DEVICES = harmony.cpu_devices(2)

import keras  # pylint: disable=wrong-import-position
import numpy as np  # pylint: disable=wrong-import-position
import tensorflow as tf  # pylint: disable=wrong-import-position

from tests.harmony_runner import compared  # pylint: disable=wrong-import-position
from tests.harmony_runner import layer_table as table  # pylint: disable=wrong-import-position
from tests.harmony_runner import own_layers  # pylint: disable=wrong-import-position

BATCH = 4
RATE = 0.005  # losses fall; with ten times as much some grow, and rounding with them
RNG = np.random.default_rng(4)


def model_of(name):
    """Inputs, scaled by weights; the layer; a dense one at the end."""
    text, given = table.TRIED[name]
    inputs = keras.tree.map_structure(_input, given)
    scaled = keras.tree.map_structure(_scaled, inputs)
    layer = eval(text, _names(text))  # pylint: disable=eval-used  # texts of the table
    made = layer(*scaled) if isinstance(scaled, tuple) else layer(scaled)
    floats = [keras.layers.Flatten()(keras.ops.cast(each, "float32"))
              for each in keras.tree.flatten(made)]
    joined = keras.layers.Concatenate()(floats) if len(floats) > 1 else floats[0]
    return keras.Model(keras.tree.flatten(inputs), keras.layers.Dense(2)(joined))


def _input(kind):
    shape, dtype = table.WHOLE.get(kind) or (table.SHAPES[kind], "float32")
    return keras.Input(shape, dtype=dtype)


def _scaled(tensor):
    return own_layers.Scale()(tensor) if tensor.dtype == "float32" else tensor


def _names(text):
    """What a text may use; with a saved model for TFSMLayer."""
    names = {**vars(keras.layers), **vars(own_layers), "Sequential": keras.Sequential,
             "np": np}
    if "SAVED" in text:
        names["SAVED"] = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        saved = keras.Sequential([keras.Input((6,)), keras.layers.Dense(4)])
        saved.export(names["SAVED"], verbose=False)
    return names


def classes():
    """Names of all classes of keras.layers; one with several names has its own."""
    every = (getattr(keras.layers, name) for name in dir(keras.layers))
    return sorted({each.__name__ for each in every
                   if isinstance(each, type) and issubclass(each, keras.layers.Layer)})


def batch_for(model):
    x = [_data(tensor) for tensor in model.inputs]
    return x if len(x) > 1 else x[0], RNG.standard_normal((BATCH, 2), dtype=np.float32)


def _data(tensor):
    shape = (BATCH, *tensor.shape[1:])
    if tensor.dtype == "string":
        return tf.constant(RNG.choice(["a", "b", "z"], shape))
    if tensor.dtype == "int32":
        return RNG.integers(0, 8, shape)
    return RNG.uniform(0, 1, shape).astype(np.float32)


def result_of(name):
    keras.backend.clear_session()  # names of layers begin anew
    keras.utils.set_random_seed(5)
    try:
        model = model_of(name)
    except Exception as error:  # pylint: disable=broad-except  # Keras cannot make it
        return {"keras": re.sub("<KerasTensor .*?>", "<KerasTensor>", str(error).splitlines()[0])}
    model.compile(keras.optimizers.SGD(RATE), "mse")
    x, y = batch_for(model)
    try:
        return compared.train(model, x, y, DEVICES, microbatch=2)
    except harmony.HarmonyError as error:
        return {"refused": str(error), "trained": int(model.optimizer.iterations.numpy())}
    except Exception as error:  # pylint: disable=broad-except  # the others are tried in any case
        return {"failed": f"{type(error).__name__}: {error}"}


def main():
    names = sys.argv[1:]
    if names[0].isdigit():
        part, parts = map(int, names)
        names = sorted(table.TRIED)[part::parts]
    print(json.dumps({"classes": classes(),
                      "results": {name: result_of(name) for name in names}}))


main()
