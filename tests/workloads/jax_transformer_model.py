"""A decoder like GPT-2's, in plain JAX."""

import jax
import jax.numpy as jnp
import jax_program
import numpy as np


def add_options(options, layers=6, width=512, heads=8, tokens=256, vocabulary=8192):
    options.add_argument("--layers", type=int, default=layers)
    options.add_argument("--width", type=int, default=width)
    options.add_argument("--heads", type=int, default=heads)
    options.add_argument("--tokens", type=int, default=tokens)
    options.add_argument("--vocabulary", type=int, default=vocabulary)
    return options


def new_block(width):
    def matrix(rows, columns):
        return jnp.full((rows, columns), 0.02)

    return {
        "qkv": matrix(width, 3 * width), "out": matrix(width, width), "norm1": jnp.ones(width),
        "widen": matrix(width, 4 * width), "narrow": matrix(4 * width, width),
        "norm2": jnp.ones(width),
    }


def new_parameters(options):
    return {
        "words": jnp.full((options.vocabulary, options.width), 0.02),
        "blocks": [new_block(options.width) for _ in range(options.layers)],
    }


def normalize(x, gain):
    centred = x - x.mean(-1, keepdims=True)
    return gain * centred / jnp.sqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)


def block(heads, x, p):
    batch, length, width = x.shape

    def split(y):
        return y.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

    query, key, value = map(split, jnp.split(normalize(x, p["norm1"]) @ p["qkv"], 3, axis=-1))
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, key) / np.sqrt(width // heads)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), value)
    x = x + mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ p["out"]
    return x + jax.nn.gelu(normalize(x, p["norm2"]) @ p["widen"]) @ p["narrow"]


def make_loss(heads, wrap=lambda function: function):
    """The loss as a function of parameters and words; `wrap` goes around every block."""
    one_block = wrap(lambda x, p: block(heads, x, p))

    def loss(parameters, words):
        x = parameters["words"][words]
        for p in parameters["blocks"]:
            x = one_block(x, p)
        return jax_program.cross_entropy(x @ parameters["words"].T, words)

    return loss


def words(options, length=None):
    shape = (options.batch, length or options.tokens)
    return np.random.default_rng(shape[1]).integers(0, options.vocabulary, shape, np.int32)
