"""Training and evaluation in turn, with larger batches for evaluation."""

import keras_program
import keras_transformer
import program

if __name__ == "__main__":
    parser = keras_transformer.add_options(keras_program.parser(__doc__, steps=2, batch=8), layers_=6)
    parser.add_argument("--rounds", type=program.positive, default=3)
    options = parser.parse_args()
    model = keras_transformer.decoder(options, options.tokens)
    keras_program.compile_classifier(model, options)
    small = keras_program.tokens(options, options.tokens, options.vocabulary)
    options.batch *= 2
    large = keras_program.tokens(options, options.tokens, options.vocabulary)
    usage = keras_program.Usage()
    for _ in range(options.rounds):
        model.fit(keras_program.repeat(small, options.steps), shuffle=False, verbose=0, callbacks=[usage])
        model.evaluate(keras_program.repeat(large, 1), verbose=0)
    program.report("train_eval", usage, jit=options.jit, parameters=model.count_params())
