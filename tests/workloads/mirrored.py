"""One process, all its GPUs: tf.distribute.MirroredStrategy, gradients added by NCCL."""

import keras_program
import keras
import numpy as np
import program
import tensorflow as tf
from keras import layers

if __name__ == "__main__":
    parser = keras_program.parser(__doc__, batch=256)
    parser.add_argument("--width", type=int, default=2048)
    options = parser.parse_args()
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = keras.Sequential([
            keras.Input((784,)),
            layers.Dense(options.width, activation="relu"),
            layers.Dense(10),
        ])
        keras_program.compile_classifier(model, options)
    batch = (np.zeros((options.batch, 784), np.float32), np.arange(options.batch) % 10)
    usage = keras_program.Usage()
    model.fit(keras_program.repeat(batch, options.steps), shuffle=False, verbose=0,
              callbacks=[usage])
    program.report("mirrored", usage, replicas=strategy.num_replicas_in_sync)
