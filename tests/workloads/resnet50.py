"""ResNet-50: many small layers."""

import keras_program
import keras

if __name__ == "__main__":
    parser = keras_program.parser(__doc__)
    parser.add_argument("--size", type=int, default=224, help="pixels per side")
    options = parser.parse_args()
    model = keras.applications.ResNet50(weights=None, input_shape=(options.size, options.size, 3))
    keras_program.compile_classifier(model, options, from_logits=False)
    keras_program.train("resnet50", model, keras_program.images(options), options)
