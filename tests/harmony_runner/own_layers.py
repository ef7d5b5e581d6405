"""Layers for these tests, as users write them."""

import keras
from keras import layers


class Scale(layers.Layer):
    """Weights before the tested layer, so that a gradient goes through it."""

    def build(self, shape):
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, inputs):
        return inputs * self.scale


class Own(layers.Layer):
    """A typical user's layer: layers inside, and no `training` in its call()."""

    def __init__(self, **options):
        super().__init__(activity_regularizer="l2", **options)
        self.inside = [layers.Dense(4), layers.BatchNormalization(), layers.Dropout(0.5, seed=3)]

    def build(self, shape):
        self.inside[0].build(shape)
        self.inside[1].build((*shape[:-1], 4))

    def call(self, inputs):
        for layer in self.inside:
            inputs = layer(inputs)
        self.add_loss(keras.ops.mean(inputs ** 2))
        return inputs


class Shifted(layers.Layer):
    """Assigns to its state and reads it in the same call. Counts microbatches in an integer that is
    not a seed."""

    def build(self, shape):
        self.mean = self.add_weight(shape=(shape[-1],), initializer="zeros", trainable=False)
        self.calls = self.add_weight(shape=(), initializer="zeros", dtype="int32", trainable=False)

    def call(self, inputs, training=False):
        if training:
            self.calls.assign_add(1)
            self.mean.assign(0.5 * self.mean + 0.5 * keras.ops.mean(inputs, 0))
        return inputs - self.mean


class Twice(layers.Wrapper):

    def call(self, inputs):
        return self.layer(self.layer(inputs))
