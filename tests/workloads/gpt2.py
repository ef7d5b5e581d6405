"""GPT-2, 12 layers; with --lengths variable every step has sentences of another length."""

import keras_program
import keras_transformer
import program
import tensorflow as tf


def lengths(longest, steps):
    """Lengths between half and all of the longest, in an order that rarely repeats."""
    return [longest // 2 + (step * 5 + 3) % 8 * longest // 16 + longest // 16
            for step in range(steps)]


def train_all_lengths(model, options, usage):
    """A separate step with fixed shapes for every length, as bucketing does."""
    @tf.function(jit_compile=options.jit == "on")
    def step(words, targets):
        with tf.GradientTape() as tape:
            loss = model.compute_loss(y=targets, y_pred=model(words, training=True))
        variables = model.trainable_variables
        model.optimizer.apply(tape.gradient(loss, variables), variables)

    model.optimizer.build(model.trainable_variables)
    for length in lengths(options.tokens, options.steps):
        step(*map(tf.constant, keras_program.tokens(options, length, options.vocabulary)))
        usage.note()


if __name__ == "__main__":
    parser = keras_transformer.add_options(keras_program.parser(__doc__, steps=4, batch=8))
    parser.add_argument("--lengths", choices=("fixed", "variable"), default="fixed")
    options = parser.parse_args()
    fixed = options.lengths == "fixed"
    model = keras_transformer.decoder(options, options.tokens if fixed else None)
    keras_program.compile_classifier(model, options)
    if fixed:
        batch = keras_program.tokens(options, options.tokens, options.vocabulary)
        keras_program.train("gpt2", model, batch, options)
    else:
        noted = keras_program.Usage()
        train_all_lengths(model, options, noted)
        program.report("gpt2", noted, jit=options.jit, lengths=options.lengths,
                       parameters=model.count_params())
