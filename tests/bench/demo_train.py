"""The model that `./dev demo` trains: a small language model that remembers what it has read.

Sentences have all lengths, and the hidden states of the latest ones are kept, as in models that
look things up while they write. So blocks of many sizes come and go, which fragments memory.
"""

import collections
import json
import sys

import keras
import numpy as np
import tensorflow as tf

VOCABULARY, WIDTH, LAYERS, HEADS, BATCH, LONGEST = 512, 128, 3, 4, 16, 192
STEPS = 60
REMEMBERED = 30  # batches


def decoder():
    words = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(VOCABULARY, WIDTH)(words)
    hidden = []
    for _ in range(LAYERS):
        normed = keras.layers.LayerNormalization()(x)
        x = x + keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(
            normed, normed, use_causal_mask=True)
        normed = keras.layers.LayerNormalization()(x)
        x = x + keras.layers.Dense(WIDTH)(keras.layers.Dense(4 * WIDTH, "gelu")(normed))
        hidden.append(x)
    return keras.Model(words, keras.layers.Dense(VOCABULARY)(x)), keras.Model(words, hidden)


def sentences(draw, length):
    """Returns words that follow from earlier words, so that there is something to learn."""
    start = draw.integers(0, VOCABULARY, (BATCH, 1))
    words = (start + 7 * np.arange(length + 1)) % VOCABULARY
    return words[:, :-1].astype(np.int32), words[:, 1:].astype(np.int32)


def main():
    keras.utils.set_random_seed(1)
    tf.config.experimental.enable_op_determinism()
    model, reader = decoder()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  jit_compile=False)
    draw = np.random.default_rng(1)
    memory = collections.deque(maxlen=REMEMBERED)
    for step in range(STEPS):
        words, following = sentences(draw, int(draw.integers(LONGEST // 6, LONGEST + 1)))
        loss = float(model.train_on_batch(words, following))
        memory.append(reader(words))
        print(json.dumps({"step": step + 1, "loss": loss}), flush=True)


if __name__ == "__main__":
    try:
        main()
    except tf.errors.ResourceExhaustedError as error:
        print(error, file=sys.stderr)
        sys.exit(3)
