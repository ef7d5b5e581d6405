"""A multilayer perceptron."""

import keras_program
import keras
import numpy as np
from keras import layers

if __name__ == "__main__":
    parser = keras_program.parser(__doc__, batch=256)
    parser.add_argument("--width", type=int, default=2048)
    options = parser.parse_args()
    model = keras.Sequential([
        keras.Input((784,)),
        layers.Dense(options.width, activation="relu"),
        layers.Dropout(0.2),
        layers.Dense(options.width, activation="relu"),
        layers.Dense(10),
    ])
    batch = (np.random.default_rng(0).random((options.batch, 784), np.float32),
             np.arange(options.batch) % 10)
    keras_program.train("mlp", keras_program.compile_classifier(model, options), batch, options)
