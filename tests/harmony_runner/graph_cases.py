"""Models as users build them, trained with Harmony and as Keras does. Prints JSON."""

import json

from thimble_gpu import harmony

DEVICES = harmony.cpu_devices(2)

import keras  # pylint: disable=wrong-import-position
import numpy as np  # pylint: disable=wrong-import-position
from keras import layers  # pylint: disable=wrong-import-position
from keras import ops  # pylint: disable=wrong-import-position

from tests.harmony_runner import compared  # pylint: disable=wrong-import-position
from tests.harmony_runner import own_layers  # pylint: disable=wrong-import-position

BATCH, MICROBATCH = 4, 2
RNG = np.random.default_rng(8)


def floats(*shape):
    return RNG.uniform(0, 1, (BATCH, *shape)).astype(np.float32)


def first_operations_without_weights():
    model = keras.Sequential([
        keras.Input((4, 4, 3)), layers.Rescaling(0.5), layers.ZeroPadding2D(1),
        layers.RandomFlip(seed=1), layers.Flatten(), layers.Dropout(0.2, seed=2),
        layers.Dense(8, activation="relu"), layers.Dense(8), layers.Dense(2)])
    return model, floats(4, 4, 3), floats(2)


def losses_that_layers_add():
    model = keras.Sequential([keras.Input((6,)), own_layers.Own(),
                              layers.Dense(4, activity_regularizer="l1", kernel_regularizer="l2"),
                              layers.ActivityRegularization(0.1), layers.Dense(2)])
    return model, floats(6), floats(2)


def nothing_but_losses_that_layers_add():
    class Away(layers.Layer):
        def call(self, pair):
            self.add_loss(ops.mean((pair[0] - pair[1]) ** 2))
            return pair[0]

    inputs = keras.Input((6,))
    code = layers.Dense(3, activation="relu")(inputs)
    return keras.Model(inputs, Away()([layers.Dense(6)(code), inputs])), floats(6), None


def models_in_models():
    """Nested three deep, with named inputs, a mask as an argument and an integer input."""
    word, number = keras.Input((5,), name="word", dtype="int32"), keras.Input((5, 4), name="number")
    mixed = layers.Concatenate()([layers.Embedding(10, 4)(word), number])
    inner = keras.Model({"word": word, "number": number},
                        {"all": layers.LSTM(6, return_sequences=True)(mixed), "number": number})
    deeper = keras.Sequential([layers.Dense(6, activation="relu"), layers.LayerNormalization(),
                               keras.Sequential([layers.Dense(6), layers.Dropout(0.2, seed=1)])])
    middle_in = keras.Input((5, 4))
    made = inner({"number": middle_in, "word": layers.Flatten()(middle_in[:, :, :1] * 9)})
    middle = keras.Model(middle_in, deeper(made["all"]) + layers.Dense(6)(made["number"]))
    outer = keras.Input((5, 4))
    masked = middle(layers.Dense(4)(outer), mask=outer[:, :, 0] > 0.3)
    return keras.Model(outer, layers.Dense(2)(layers.Flatten()(masked))), floats(5, 4), floats(2)


def one_model_in_two_places():
    """A model with averages, random numbers and its own loss, to which each place contributes."""
    shared = keras.Sequential([
        keras.Input((6,)), layers.Dense(6, activity_regularizer="l2"),
        layers.BatchNormalization(), layers.Dropout(0.2, seed=1), layers.Dense(4)], name="shared")
    left, right = keras.Input((6,)), keras.Input((6,))
    joined = layers.Concatenate()([shared(layers.Dense(6)(left)), shared(right)])
    hidden = layers.Dense(8, activation="relu")(joined)
    model = keras.Model([left, right], layers.Dense(2)(hidden))
    return model, [floats(6), floats(6)], floats(2)


def the_same_input_twice():
    left, right = keras.Input((6,)), keras.Input((6,))
    inner = keras.Model([left, right], layers.Dense(4)(left) * layers.Dense(4)(right))
    inputs = keras.Input((6,))
    hidden = layers.Dense(6)(inputs)
    return keras.Model(inputs, layers.Dense(2)(inner([hidden, hidden]))), floats(6), floats(2)


def weights_as_arguments():
    """The last layer multiplies by the embedding of the first layer."""
    words = keras.Input((5,), dtype="int32")
    table = layers.Embedding(10, 6)
    hidden = layers.Dense(6, activation="relu")(table(words))
    scores = ops.einsum("bld,wd->blw", hidden, table.embeddings)
    model = keras.Model(words, layers.Dense(2)(layers.Flatten()(scores)))
    return model, RNG.integers(0, 10, (BATCH, 5)), floats(2)


def masks_of_predictions():
    model = keras.Sequential([
        keras.Input((5,), dtype="int32"), layers.Embedding(10, 6, mask_zero=True),
        layers.LSTM(6, return_sequences=True), layers.Dense(2)])
    words = RNG.integers(1, 10, (BATCH, 5))
    for sample, length in enumerate((2, 5, 3, 1)):
        words[sample, length:] = 0
    return model, words, floats(5, 2)


def samples_times_words():
    """The batch is not always the first dimension."""
    inputs = keras.Input((5, 4))
    flat = layers.Dense(6, activation="relu")(ops.reshape(inputs, (-1, 4)))
    back = ops.reshape(layers.Dense(6)(flat), (-1, 5 * 6))
    return keras.Model(inputs, layers.Dense(2)(back)), floats(5, 4), floats(2)


def functions_and_frozen_parts():
    middle = keras.Input((6,))
    function = keras.Function(middle, layers.Dense(6, activation="tanh")(middle))
    base = keras.Sequential([keras.Input((6,)), layers.Dense(6), layers.BatchNormalization()])
    base.trainable = False
    inputs = keras.Input((6,))
    hidden = base(layers.Dense(6)(inputs), training=False)
    model = keras.Model(inputs, layers.Dense(2)(function(hidden)))
    return model, floats(6), floats(2)


def convolutions_with_biases():
    """Convolutions come first. oneDNN fuses the gradients of a bias and of its filter."""
    encoder = keras.Sequential([
        keras.Input((8, 8, 3)), layers.Conv2D(4, 3, activation="relu"),
        layers.Conv2D(4, 3, activation="relu"), layers.Flatten(), layers.Dense(4)])
    left, right = keras.Input((8, 8, 3)), keras.Input((8, 8, 3))
    model = keras.Model([left, right], layers.Dense(2)(encoder(left) - encoder(right)))
    return model, [floats(8, 8, 3), floats(8, 8, 3)], floats(2)


def state_that_is_assigned_and_read():
    model = keras.Sequential([keras.Input((6,)), layers.Dense(6), own_layers.Shifted(),
                              layers.Dense(4), own_layers.Shifted(), layers.Dense(2)])
    return model, floats(6), floats(2)


def seeds_that_advance_without_training():
    """Both layers of Keras also draw in evaluate() and ignore the result."""
    model = keras.Sequential([
        keras.Input((8, 8, 3)), layers.RandomHue(0.2, (0, 1), seed=1), layers.Reshape((8, 24)),
        layers.LSTM(4, dropout=0.2, seed=2), layers.Dense(4), layers.Dense(2)])
    return model, floats(8, 8, 3), floats(2)


def probabilities_that_are_rounded_to_zero():
    """Keras' crossentropies use the values before softmax or sigmoid, in the last pack and in an
    earlier one."""
    inputs = keras.Input((6,))
    early = layers.Dense(3, activation="softmax")(layers.Dense(8)(inputs) * 60)
    hidden = layers.Dense(8, activation="tanh")(layers.Concatenate()([early, inputs]))
    late = layers.Activation("sigmoid")(layers.Dense(1)(layers.Dense(8)(hidden)) * 60)
    model = keras.Model(inputs, [early, late])
    model.compile(keras.optimizers.SGD(1e-4),
                  ["sparse_categorical_crossentropy", "binary_crossentropy"])
    return model, floats(6), [np.array([0, 1, 2, 0]), np.array([[0.0], [1.0], [1.0], [0.0]])]


CASES = (first_operations_without_weights, losses_that_layers_add,
         nothing_but_losses_that_layers_add, models_in_models, one_model_in_two_places,
         the_same_input_twice, weights_as_arguments, masks_of_predictions, samples_times_words,
         functions_and_frozen_parts, convolutions_with_biases, state_that_is_assigned_and_read,
         seeds_that_advance_without_training, probabilities_that_are_rounded_to_zero)


def main():
    results = {}
    for case in CASES:
        keras.backend.clear_session()  # names of layers begin anew
        keras.utils.set_random_seed(5)
        model, x, y = case()
        if not model.compiled:
            model.compile(keras.optimizers.SGD(0.05), None if y is None else "mse")
        results[case.__name__] = compared.train(model, x, y, DEVICES, MICROBATCH)
    print(json.dumps(results))


main()
