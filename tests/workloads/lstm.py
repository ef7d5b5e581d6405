"""Two LSTM layers: cuDNN's recurrent networks, with their own work areas."""

import keras_program
import keras
import numpy as np
from keras import layers

if __name__ == "__main__":
    parser = keras_program.parser(__doc__, batch=64)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--width", type=int, default=512)
    options = parser.parse_args()
    model = keras.Sequential([
        keras.Input((options.length, 64)),
        layers.LSTM(options.width, return_sequences=True),
        layers.LSTM(options.width),
        layers.Dense(10),
    ])
    series = np.random.default_rng(0).random((options.batch, options.length, 64), np.float32)
    batch = (series, np.arange(options.batch) % 10)
    keras_program.train("lstm", keras_program.compile_classifier(model, options), batch, options)
