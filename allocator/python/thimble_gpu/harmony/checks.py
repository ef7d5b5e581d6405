"""Refuses, by name, what Harmony cannot train, before training begins."""

import ctypes

import keras
import tensorflow as tf

from thimble_gpu import abi
from thimble_gpu.harmony.errors import HarmonyError

_MEANS = ("sum_over_batch_size", "mean")


def size(value):
    """The bytes in a number or a text such as "4GiB"."""
    if isinstance(value, str):
        count = ctypes.c_uint64()
        core = abi.installed_core()
        if core.parse_size(value.encode(), count) != abi.OK:
            raise HarmonyError(f"memory: {core.last_error().decode(errors='replace')}")
        return count.value
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise HarmonyError(f"memory is {value!r}: give a positive number of bytes, or a text such "
                           "as '4GiB'")
    return value


def mode(value):
    if value not in ("auto", "pp", "dp"):
        raise HarmonyError(f"mode is {value!r}: valid are 'auto', 'pp' and 'dp'")
    return value


def portion(value):
    """Samples in a microbatch."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise HarmonyError(f"portion is {value!r}: give a number of samples from 1, or None")
    return value


def cpu_devices(count):
    """Makes `count` logical CPU devices to stand for GPUs; returns their names. CPU:0 is the host.

    Call it before anything else of TensorFlow. With THIMBLE_CONF=device:cpu each has its own limit.
    """
    wanted = [tf.config.LogicalDeviceConfiguration() for _ in range(count + 1)]
    [cpu] = tf.config.list_physical_devices("CPU")
    try:
        tf.config.set_logical_device_configuration(cpu, wanted)
    except RuntimeError as error:
        if len(tf.config.list_logical_devices("CPU")) < len(wanted):
            raise HarmonyError(f"TensorFlow has already created its devices ({error}): call "
                               "cpu_devices() before anything else of TensorFlow") from error
    return [f"CPU:{number + 1}" for number in range(count)]


def device_names(given):
    """The names of existing logical devices, such as "GPU:0"."""
    known = [device.name.rpartition("/device:")[2] for device in tf.config.list_logical_devices()]
    if given is None:
        given = [name for name in known if name.startswith("GPU")]
        if not given:
            raise HarmonyError(
                "there is no GPU. To train on logical CPU devices, call "
                "thimble_gpu.harmony.cpu_devices(2) before anything else of TensorFlow, and pass "
                "what it returns as devices=")
    names = [name.rpartition("/device:")[2].strip("/") if "/device:" in name else name.strip("/")
             for name in given]
    for name in names:
        if name not in known:
            raise HarmonyError(f"there is no device {name!r}: TensorFlow has {', '.join(known)}")
        if name == "CPU:0":
            raise HarmonyError("CPU:0 is the host, which holds the weights: give other devices")
    if len(set(names)) < len(names):
        raise HarmonyError(f"a device is given twice: {', '.join(names)}: name each once")
    return names


def check_model(model):
    """Checks when the model is attached."""
    if not isinstance(model, keras.Model):
        raise HarmonyError(f"{type(model).__name__} is not a keras.Model: attach a compiled one")
    if not model.compiled or model.optimizer is None:
        raise HarmonyError(f"model '{model.name}' is not compiled with an optimizer and a loss: "
                           "call compile() first")
    if model.distribute_strategy.num_replicas_in_sync > 1:
        raise HarmonyError("the model was made under a tf.distribute strategy, but Harmony "
                           "distributes models itself: make it without one")
    plain = keras.Sequential
    for name in ("train_step", "test_step", "predict_step", "compute_loss"):
        if getattr(type(model), name) is not getattr(plain, name):
            raise HarmonyError(f"model '{model.name}' has its own {name}(), but Harmony computes "
                               "losses and gradients pack by pack and cannot call it: remove it")
    if model.activity_regularizer is not None:
        raise HarmonyError(f"model '{model.name}' has an activity_regularizer: give it to its last "
                           "layer instead")
    for layer in model._flatten_layers():  # pylint: disable=protected-access
        if getattr(layer, "stateful", False):
            raise HarmonyError(f"layer '{layer.name}' is stateful: it continues where the last "
                               "batch ended, which microbatches would change. Set stateful=False")
    for variable in model.variables:
        if getattr(variable, "overwrite_with_gradient", False):
            raise HarmonyError(f"variable '{variable.path}' is set by its gradient (float8 "
                               "training), which cannot be summed over microbatches: train without "
                               "float8")
        if "GPU" in variable.value.device:
            raise HarmonyError(f"variable '{variable.path}' is on {variable.value.device}, but the "
                               "host holds the weights: make the model under `with "
                               "tf.device('CPU:0'):`")


def check_training(model, adds_loss):
    """Checks when training begins. `adds_loss`: whether layers add losses."""
    if model.loss is None and not adds_loss:
        raise HarmonyError(f"model '{model.name}' is compiled without a loss, and none of its "
                           "layers adds one: give compile() a loss")
    reductions = set()
    for loss in tf.nest.flatten(model.loss):
        if isinstance(loss, keras.losses.Loss):
            reductions.add(loss.reduction)
    for reduction in reductions:
        if reduction not in _MEANS:
            raise HarmonyError(f"a loss with reduction {reduction!r} cannot be computed from "
                               f"microbatches: valid are {', '.join(_MEANS)}")
