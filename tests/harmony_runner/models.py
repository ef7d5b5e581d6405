"""Models, batches and optimizers for these tests."""

import keras
import numpy as np
from keras import layers

WORDS = 1000


def mlp(width=1024, depth=8):
    hidden = [layers.Dense(width, activation="relu") for _ in range(depth)]
    return keras.Sequential([keras.Input((64,)), *hidden, layers.Dense(10)])


def transformer(width=256, heads=4, length=32, depth=4, dropout=0.1):
    words = keras.Input((length,), dtype="int32")
    hidden = layers.Embedding(WORDS, width)(words)
    for _ in range(depth):
        normal = layers.LayerNormalization()(hidden)
        hidden += layers.MultiHeadAttention(heads, width // heads, dropout=dropout)(
            normal, normal, use_causal_mask=True)
        normal = layers.LayerNormalization()(hidden)
        wide = layers.Dense(4 * width, activation="gelu")(normal)
        hidden += layers.Dropout(dropout)(layers.Dense(width)(wide))
    return keras.Model(words, layers.Dense(WORDS)(layers.LayerNormalization()(hidden)))


def cnn(width=64, blocks=4):
    """A residual CNN. No bias before BatchNorm: its gradient would be pure rounding, of which Adam
    makes full steps."""
    image = keras.Input((24, 24, 3))
    hidden = layers.Conv2D(width, 3, padding="same", use_bias=False)(image)
    for _ in range(blocks):
        branch = hidden
        for _ in range(2):
            branch = layers.ReLU()(layers.BatchNormalization()(branch))
            branch = layers.Conv2D(width, 3, padding="same", use_bias=False)(branch)
        hidden = layers.Add()([hidden, branch])
    return keras.Model(image, layers.Dense(10)(layers.GlobalAveragePooling2D()(hidden)))


MODELS = {"mlp": mlp, "transformer": transformer, "cnn": cnn}


def batch_of(name, seed=0):
    rng = np.random.default_rng(seed)
    if name == "mlp":
        return rng.standard_normal((32, 64), dtype=np.float32), rng.integers(0, 10, 32)
    if name == "cnn":
        return rng.standard_normal((16, 24, 24, 3), dtype=np.float32), rng.integers(0, 10, 16)
    words = rng.integers(0, WORDS, (16, 32))
    return words, words


def optimizer(name, model="mlp"):
    """The CNN gets small steps: with BatchNorm, larger steps amplify rounding differences."""
    optimizers = keras.optimizers
    rate = 2e-5 if model == "cnn" else 2e-4
    return {
        "sgd": lambda: optimizers.SGD(50 * rate, momentum=0.5),
        "adam": lambda: optimizers.Adam(rate),
        "adamw_clipnorm": lambda: optimizers.AdamW(rate, clipnorm=0.5),
        "global_clipnorm": lambda: optimizers.Adam(rate, global_clipnorm=0.5),
    }[name]()


def loss():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)
