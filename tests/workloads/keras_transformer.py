"""The decoder of GPT-2, in Keras."""

import keras
from keras import layers, ops


def add_options(options, layers_=12, width=768, heads=12, length=512, vocabulary=50257):
    options.add_argument("--layers", type=int, default=layers_)
    options.add_argument("--width", type=int, default=width)
    options.add_argument("--heads", type=int, default=heads)
    options.add_argument("--tokens", type=int, default=length)
    options.add_argument("--vocabulary", type=int, default=vocabulary)
    return options


class Block(layers.Layer):
    """Attention and a feed-forward network, each with a residual connection."""

    def __init__(self, width, heads, dropout=0.1):
        super().__init__()
        self.before_attention = layers.LayerNormalization()
        self.attention = layers.MultiHeadAttention(heads, width // heads)
        self.before_feed = layers.LayerNormalization()
        self.widen = layers.Dense(4 * width, activation="gelu")
        self.narrow = layers.Dense(width)
        self.dropout = layers.Dropout(dropout)

    def build(self, shape):
        self.before_attention.build(shape)
        self.attention.build(shape, shape)
        self.before_feed.build(shape)
        self.widen.build(shape)
        self.narrow.build((*shape[:-1], self.widen.units))

    def call(self, x, training=None):
        y = self.before_attention(x)
        y = self.attention(y, y, use_causal_mask=True, training=training)
        x = x + self.dropout(y, training=training)
        y = self.narrow(self.widen(self.before_feed(x)))
        return x + self.dropout(y, training=training)


class Embedding(layers.Layer):
    """Words and their positions."""

    def __init__(self, vocabulary, length, width):
        super().__init__()
        self.words = layers.Embedding(vocabulary, width)
        self.positions = layers.Embedding(length, width)

    def build(self, shape):
        self.words.build()
        self.positions.build()

    def call(self, x):
        return self.words(x) + self.positions(ops.arange(ops.shape(x)[1]))


def decoder(options, length, block=Block):
    """The model; `length` is None where it varies, `block` makes one of its layers."""
    words = keras.Input((length,), dtype="int32")
    x = Embedding(options.vocabulary, options.tokens, options.width)(words)
    for _ in range(options.layers):
        x = block(options.width, options.heads)(x)
    x = layers.LayerNormalization()(x)
    # Whatever the policy, probabilities of words are computed in full precision.
    return keras.Model(words, layers.Dense(options.vocabulary, dtype="float32")(x))
