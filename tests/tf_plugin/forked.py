"""Runs functions in separate processes, each with its own variables and plugin.

TensorFlow reads its settings once, and importing it takes seconds. So one process imports it, and
every case is a fork of that process, made before TensorFlow has done anything.
"""

import ctypes
import os
import pickle
import tempfile
import traceback
import types

import tensorflow as tf

# Relative to this file, not to the current folder: `./dev bench` runs elsewhere.
PLUGIN = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir,
                                       os.pardir, "tf_plugin", "libthimble_tf.so"))
# A user's variables must not affect a test.
OWN_VARIABLES = ("TF_GPU_ALLOCATOR", "THIMBLE_CONF", "TF_FORCE_GPU_ALLOW_GROWTH")


class Result:
    """What a case did: what its function returned, and what it and TensorFlow wrote."""

    def __init__(self, answer, log):
        self.answer = answer
        self.log = log

    def lines_with(self, text):
        return [line for line in self.log.splitlines() if text in line]

    def __str__(self):
        return f"{self.answer}\n{self.log}"


def load(plugin):
    tf.load_library(plugin)


def _case(function, arguments, plugin, variables):
    for name in OWN_VARIABLES:
        os.environ.pop(name, None)
    os.environ.update(variables)
    try:
        if plugin:
            load(plugin)
        return function(*arguments)
    except BaseException:  # the parent must see it, whatever it is
        return traceback.format_exc()


def run(function, *arguments, plugin=PLUGIN, **variables):
    """Calls `function` in a new process with `variables` set and the plugin loaded.

    If a case fails or is killed by a signal, its answer is None.
    """
    with tempfile.TemporaryFile() as log, tempfile.TemporaryFile() as answer:
        process = os.fork()
        if process == 0:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            pickle.dump(_case(function, arguments, plugin, variables), answer)
            answer.flush()
            os._exit(0)  # the parent's clean-up is not the child's
        os.waitpid(process, 0)
        log.seek(0)
        answer.seek(0)
        text = log.read().decode(errors="replace")
        try:
            return Result(pickle.load(answer), text)
        except EOFError:
            return Result(None, text)


def loaded(library):
    """Path of a library of this process, or None."""
    with open("/proc/self/maps") as maps:
        return next((line.split()[-1] for line in maps if line.rstrip().endswith(library)), None)


def arena_stats(device):
    """Statistics of the arena behind a device of this process; None if it has none.

    As in tf_plugin/README.md: the plugin returns the arena, and the core that it loaded returns the
    figures.
    """
    plugin = ctypes.CDLL(PLUGIN)
    plugin.thimble_tf_arena.restype = ctypes.c_void_p
    arena = plugin.thimble_tf_arena(device)
    if not arena:
        return None
    core = ctypes.CDLL(loaded("libthimble.so"))
    core.thimble_stats_names.restype = ctypes.c_char_p
    names = core.thimble_stats_names().decode().split()
    numbers = (ctypes.c_uint64 * (1 + len(names)))()
    numbers[0] = ctypes.sizeof(numbers)  # struct_size
    assert core.thimble_get_stats(ctypes.c_void_p(arena), numbers) == 0
    return types.SimpleNamespace(**dict(zip(names, numbers[1:])))
