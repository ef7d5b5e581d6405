"""Trains published models with Harmony and as Keras does. Prints JSON.

usage: foreign_case.py NAME...
"""

import json
import sys

from thimble_gpu import harmony

DEVICES = harmony.cpu_devices(2)

import keras  # pylint: disable=wrong-import-position
import keras_hub  # pylint: disable=wrong-import-position
import numpy as np  # pylint: disable=wrong-import-position
import tensorflow as tf  # pylint: disable=wrong-import-position

from tests.harmony_runner import compared  # pylint: disable=wrong-import-position

tf.config.threading.set_intra_op_parallelism_threads(1)

BATCH, WORDS, LENGTH = 4, 50, 12
RNG = np.random.default_rng(6)


def classifier(make, pixels):
    """A classifier whose BatchNorm adapts within three steps and whose last convolutions see more
    than one pixel, so that evaluate() gives meaningful numbers before and after."""
    model = make(weights=None, classes=10, input_shape=(pixels, pixels, 3))
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.9
    model.compile(keras.optimizers.SGD(1e-3), "sparse_categorical_crossentropy")
    return model, RNG.uniform(0, 255, (BATCH, pixels, pixels, 3)), RNG.integers(0, 10, BATCH)


def tokens():
    padding = np.ones((BATCH, LENGTH), np.int32)
    padding[:, 9:] = 0
    return {"token_ids": RNG.integers(1, WORDS, (BATCH, LENGTH)), "padding_mask": padding}


def gpt2():
    """A task of keras_hub, with a backbone whose embedding is also the last layer."""
    backbone = keras_hub.models.GPT2Backbone(WORDS, 3, 2, 32, 64, dropout=0.1,
                                             max_sequence_length=LENGTH)
    model = keras_hub.models.GPT2CausalLM(backbone, preprocessor=None)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss)
    return model, tokens(), RNG.integers(0, WORDS, (BATCH, LENGTH))


def bert():
    """A backbone with two outputs, one of them used, inside another model."""
    backbone = keras_hub.models.BertBackbone(WORDS, 3, 2, 32, 64, dropout=0.1,
                                             max_sequence_length=LENGTH)
    inputs = {name: keras.Input((LENGTH,), dtype="int32", name=name)
              for name in ("token_ids", "segment_ids", "padding_mask")}
    pooled = backbone(inputs)["pooled_output"]
    model = keras.Model(inputs, keras.layers.Dense(3)(keras.layers.Dropout(0.1)(pooled)))
    model.compile(keras.optimizers.SGD(0.1),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x = {**tokens(), "segment_ids": RNG.integers(0, 2, (BATCH, LENGTH))}
    return model, x, RNG.integers(0, 3, BATCH)


MODELS = {
    "EfficientNetB0": lambda: classifier(keras.applications.EfficientNetB0, 64),
    "MobileNetV2": lambda: classifier(keras.applications.MobileNetV2, 64),
    "GPT-2": gpt2,
    "BERT": bert,
}


def main():
    results = {}
    for name in sys.argv[1:]:
        keras.utils.set_random_seed(5)
        model, x, y = MODELS[name]()
        results[name] = compared.train(model, x, y, DEVICES, microbatch=2, memory="48MiB",
                                       plan=name not in ("GPT-2", "BERT"))
    print(json.dumps(results))


main()
