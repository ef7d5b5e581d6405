"""A small convolutional network with batch normalization."""

import keras_program
import keras
from keras import layers


def network(options):
    model = keras.Sequential([keras.Input((options.size, options.size, 3))])
    for filters in (32, 64, 128):
        model.add(layers.Conv2D(filters, 3, padding="same", activation="relu"))
        model.add(layers.BatchNormalization())
        model.add(layers.MaxPooling2D())
    model.add(layers.Flatten())
    model.add(layers.Dense(128, activation="relu"))
    model.add(layers.Dense(10, dtype="float32"))
    return keras_program.compile_classifier(model, options)


def train(workload, description):
    parser = keras_program.parser(description, batch=256)
    parser.add_argument("--size", type=int, default=32, help="pixels per side")
    options = parser.parse_args()
    batch = keras_program.images(options, classes=10)
    keras_program.train(workload, network(options), batch, options)


if __name__ == "__main__":
    train("cnn", __doc__)
