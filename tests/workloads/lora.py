"""Fine-tuning of GPT-2 with low-rank adapters: large frozen weights, small trained ones."""

import keras_program
import keras_transformer

if __name__ == "__main__":
    parser = keras_transformer.add_options(keras_program.parser(__doc__, steps=4, batch=8))
    parser.add_argument("--rank", type=int, default=8)
    options = parser.parse_args()
    model = keras_transformer.decoder(options, options.tokens)
    for layer in model.layers:
        if isinstance(layer, keras_transformer.Block):
            layer.before_attention.trainable = layer.before_feed.trainable = False
            layer.attention.trainable = False
            layer.widen.enable_lora(options.rank)
            layer.narrow.enable_lora(options.rank)
        else:
            layer.trainable = False
    batch = keras_program.tokens(options, options.tokens, options.vocabulary)
    keras_program.train("lora", keras_program.compile_classifier(model, options), batch, options)
