"""Models and settings that Harmony refuses. Prints its messages, and that nothing changed."""

import json
import random
import tempfile

from thimble_gpu import harmony

DEVICES = harmony.cpu_devices(2)

import keras  # pylint: disable=wrong-import-position
import numpy as np  # pylint: disable=wrong-import-position
import tensorflow as tf  # pylint: disable=wrong-import-position
from keras import layers  # pylint: disable=wrong-import-position

X = np.random.default_rng(0).standard_normal((16, 32), dtype=np.float32)
Y = X[:, :4]


def dense(*last, **compile_options):
    model = keras.Sequential([keras.Input((32,)), layers.Dense(64, name="first"), *last,
                              layers.Dense(4, name="last")])
    model.compile(**{"optimizer": "sgd", "loss": "mse", **compile_options})
    return model


def fit(model, **options):
    harmony.attach(model, **{"devices": DEVICES, "memory": "64MiB", "mode": "pp", **options})
    model.fit(X, Y, batch_size=16, verbose=0)


def layer_that_does_not_fit():
    fit(dense(layers.Dense(2048, name="wide"), layers.Dense(2048, name="wider")), memory="8MiB")


def plan_that_does_not_fit():
    plan = harmony.Plan("pp", 2, 16, (), (harmony.Task(0, 2, 0, (16,)),))
    fit(dense(layers.Dense(512, name="wide")), plan=plan, memory="256KiB")


def fit_by(forward, backward, gpus=2):
    """Fits two stages by tasks of (first, last, gpu, microbatches)."""
    tasks = [tuple(harmony.Task(*each) for each in kind) for kind in (forward, backward)]
    fit(dense(), plan=harmony.Plan("pp", gpus, 16, *tasks))


def plan_that_misses_stages():
    fit_by([], [(1, 1, 0, (16,))])


def plan_that_computes_stages_twice():
    fit_by([(0, 0, 0, (16,))], [(1, 1, 0, (16,)), (0, 1, 0, (16,))])


def plan_with_more_stages_than_there_are():
    fit_by([(0, 1, 0, (16,))], [(2, 2, 0, (16,)), (0, 1, 0, (16,))])


def plan_without_backward():
    fit_by([(0, 1, 0, (16,))], [])


def plan_for_more_devices():
    fit_by([], [(0, 1, 0, (16,))], gpus=3)


def plan_on_a_device_that_is_not_there():
    fit_by([], [(0, 1, 2, (16,))])


def plan_with_empty_microbatches():
    fit_by([], [(0, 1, 0, (8, 0, 8))])


def plan_that_saves_what_nobody_restores():
    fit_by([(0, 0, 0, (16,), True)], [(1, 1, 0, (16,)), (0, 0, 0, (16,))])


def memory_that_is_none():
    fit(dense(), memory=0)


def memory_that_is_no_size():
    fit(dense(), memory="lots")


def device_that_is_not_there():
    fit(dense(), devices=["GPU:7"])


def host_as_device():
    fit(dense(), devices=["CPU:0"])


def unknown_mode():
    fit(dense(), mode="fast")


def model_with_a_call_of_its_own():
    class Own(keras.Model):
        def __init__(self):
            super().__init__(name="own")
            self.only = layers.Dense(4)

        def call(self, inputs):
            return self.only(inputs)

    model = Own()
    model.compile("sgd", "mse")
    model(X)
    fit(model)


def train_step_of_its_own():
    class Own(keras.Sequential):
        def train_step(self, data):
            return super().train_step(data)

    model = Own([keras.Input((32,)), layers.Dense(4)], name="own")
    model.compile("sgd", "mse")
    fit(model)


def stateful_recurrence():
    model = keras.Sequential([keras.Input((8, 4), batch_size=16),
                              layers.LSTM(8, stateful=True, name="goes_on"), layers.Dense(4)])
    model.compile("sgd", "mse")
    fit(model)


def shared_state_that_does_not_fit():
    """Layers between two places of a BatchNorm are in one pack with it."""
    shared = layers.BatchNormalization(name="shared")
    inputs = keras.Input((32,))
    hidden = shared(layers.Dense(32)(layers.Dense(2048, name="wide")(shared(inputs))))
    model = keras.Model(inputs, layers.Dense(4)(hidden))
    model.compile("sgd", "mse")
    fit(model, memory="512KiB")


def random_numbers_of_tensorflow():
    class Noise(layers.Layer):
        def call(self, inputs):
            return tf.map_fn(lambda row: row + tf.random.normal([]), inputs)

    fit(dense(Noise(name="noise")))


def random_numbers_of_python():
    class Choice(layers.Layer):
        def call(self, inputs):
            return inputs * random.random()

    fit(dense(Choice(name="choice")))


def weight_that_is_assigned():
    fit(dense(layers.SpectralNormalization(layers.Dense(8), name="spectral")))


def sparse_input():
    model = keras.Sequential([keras.Input((32,), sparse=True, name="words"), layers.Dense(4)])
    model.compile("sgd", "mse")
    fit(model)


def without_a_loss():
    fit(dense(loss=None))


def not_compiled():
    fit(keras.Sequential([keras.Input((32,)), layers.Dense(4)], name="raw"))


def topology_that_is_not_there():
    harmony.attach(dense(), devices=DEVICES, memory="64MiB", topology="nowhere")


def topology_with_too_few_gpus():
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("switch a uplink 1GiB\ngpu 0 switch a\n")
        file.flush()
        fit(dense(), topology=file.name)


def not_built():
    model = keras.Sequential([layers.Dense(4)], name="raw")
    model.compile("sgd", "mse")
    fit(model)


def loss_that_sums_up_nothing():
    fit(dense(loss=keras.losses.MeanSquaredError(reduction="none")))


def variable_of_another_layer():
    class Reads(layers.Layer):
        def call(self, inputs):
            return inputs * elsewhere

    elsewhere = keras.Variable(2.0, name="elsewhere")
    fit(dense(Reads(name="reads")))


CASES = (layer_that_does_not_fit, plan_that_does_not_fit, plan_that_misses_stages,
         plan_that_computes_stages_twice, plan_with_more_stages_than_there_are,
         plan_without_backward, plan_for_more_devices, plan_on_a_device_that_is_not_there,
         plan_with_empty_microbatches, plan_that_saves_what_nobody_restores, memory_that_is_none,
         memory_that_is_no_size, device_that_is_not_there, host_as_device, unknown_mode,
         model_with_a_call_of_its_own, train_step_of_its_own, stateful_recurrence,
         shared_state_that_does_not_fit, random_numbers_of_tensorflow, random_numbers_of_python,
         weight_that_is_assigned, sparse_input, without_a_loss, not_compiled, not_built,
         loss_that_sums_up_nothing, variable_of_another_layer, topology_that_is_not_there,
         topology_with_too_few_gpus)


def usable_afterwards():
    """A refused model still trains normally, without Harmony and with it."""
    model = dense()
    before = [variable.numpy() for variable in model.variables]
    attached = harmony.attach(model, devices=DEVICES, memory="64KiB", mode="pp")
    try:
        model.fit(X, Y, batch_size=16, verbose=0)
        return "was not refused"
    except harmony.HarmonyError:
        pass
    same = all(np.array_equal(old, v.numpy()) for old, v in zip(before, model.variables))
    steps = int(model.optimizer.iterations.numpy())
    attached.detach()
    plain = model.fit(X, Y, batch_size=16, verbose=0).history["loss"][0]
    for variable, value in zip(model.variables, before):
        variable.assign(value)
    harmony.attach(model, devices=DEVICES, memory="64MiB", mode="pp")
    again = model.fit(X, Y, batch_size=16, verbose=0).history["loss"][0]
    return [same, steps, abs(again - plain) < 1e-5 * plain]


def main():
    said = {}
    for case in CASES:
        try:
            case()
            said[case.__name__] = "nothing"
        except harmony.HarmonyError as error:
            said[case.__name__] = str(error)
    print(json.dumps({"said": said, "afterwards": usable_afterwards()}))


main()
