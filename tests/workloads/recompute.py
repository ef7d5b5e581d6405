"""GPT-2 with gradient checkpointing: tf.recompute_grad around every layer."""

import keras_program
import keras_transformer
import tensorflow as tf
from keras import layers


class Recomputed(layers.Layer):
    """A block that keeps only its input for the backward pass."""

    def __init__(self, width, heads):
        super().__init__()
        # No dropout: it would draw other numbers the second time.
        self.block = keras_transformer.Block(width, heads, dropout=0.0)

    def build(self, shape):
        self.block.build(shape)
        self.block.built = True

    def call(self, x):
        return tf.recompute_grad(self.block)(x)


if __name__ == "__main__":
    parser = keras_transformer.add_options(keras_program.parser(__doc__, steps=4, batch=8))
    options = parser.parse_args()
    model = keras_transformer.decoder(options, options.tokens, block=Recomputed)
    batch = keras_program.tokens(options, options.tokens, options.vocabulary)
    keras_program.train("recompute", keras_program.compile_classifier(model, options), batch,
                        options)
