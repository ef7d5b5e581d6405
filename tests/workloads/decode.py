"""Eager decoding: sentences begin and end, and the caches of keys and values grow word by word."""

import random

import keras_program
import program
import tensorflow as tf


class Sentence:
    """One sentence being written: per layer, the keys and values of all words so far."""

    def __init__(self, options, length, wanted):
        shape = (options.heads, length, options.width // options.heads)
        self.caches = [(tf.zeros(shape), tf.zeros(shape)) for _ in range(options.layers)]
        self.wanted = wanted

    def append_word(self, x, weights, heads):
        for i, (project, output) in enumerate(weights):
            query, key, value = tf.split(tf.reshape(x @ project, (heads, 1, -1)), 3, axis=-1)
            keys = tf.concat([self.caches[i][0], key], axis=1)
            values = tf.concat([self.caches[i][1], value], axis=1)
            self.caches[i] = (keys, values)
            scores = tf.nn.softmax(query @ tf.transpose(keys, (0, 2, 1)))
            x = x + tf.reshape(scores @ values, (1, -1)) @ output
        self.wanted -= 1
        return x


def decode(options, usage):
    draw = random.Random(0)
    width = options.width
    weights = [(tf.zeros((width, 3 * width)), tf.zeros((width, width)))
               for _ in range(options.layers)]

    def new_sentence():
        return Sentence(options, draw.randint(1, options.prompt), draw.randint(1, options.words))

    sentences = [new_sentence() for _ in range(options.batch)]
    for _ in range(options.steps):
        for i, sentence in enumerate(sentences):
            sentence.append_word(tf.zeros((1, width)), weights, options.heads)
            if sentence.wanted == 0:
                sentences[i] = new_sentence()
        usage.note()


if __name__ == "__main__":
    parser = program.parser(__doc__, steps=50, batch=16)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--prompt", type=int, default=512, help="longest prompt")
    parser.add_argument("--words", type=int, default=128, help="longest answer")
    parsed = parser.parse_args()
    noted = keras_program.Usage()
    with tf.device(keras_program.DEVICE):
        decode(parsed, noted)
    program.report("decode", noted)
