"""A network in mixed_float16: halved activations, and a scaled loss that is checked every step."""

import cnn
import keras

if __name__ == "__main__":
    keras.mixed_precision.set_global_policy("mixed_float16")
    cnn.train("mixed", __doc__)
