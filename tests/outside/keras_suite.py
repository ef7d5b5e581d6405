"""Keras' own tests, which are part of its wheel."""

import dataclasses
import importlib.util
import pathlib

from tests.outside import modes
from tests.outside import units

# Groups of tests, each run in one process: folders and files below keras/src. They are chosen for
# what they do with memory: training, saving and loading, forks and threads, state, loops, eager ops
# of all kinds.
GROUPS = {
    "saving": ("saving",),
    "trainers": ("trainers",),
    "models": ("models",),
    "callbacks": ("callbacks",),
    "optimizers": ("optimizers",),
    "losses": ("losses",),
    "metrics": ("metrics",),
    "utils": ("utils",),
    "convolutional": ("layers/convolutional",),
    "core": ("layers/core",),
    "rnn": ("layers/rnn",),
    "attention": ("layers/attention",),
    "normalization": ("layers/normalization", "layers/pooling"),
    "random": ("random", "initializers", "constraints", "regularizers"),
}
# A test that forks sometimes passes by luck, so it runs several times in a process of its own.
FORKS = "saving/saving_lib_test.py", "test_load_model_concurrently"
REPEATS = 5
SECONDS = 420  # one test; the slowest takes a minute alone on a machine


def root():
    """keras/src of the installed wheel."""
    return pathlib.Path(importlib.util.find_spec("keras").origin).parent / "src"


def collection(match=""):
    """A unit for every group, with those of its tests whose names match."""
    folder = root()
    for name, parts in GROUPS.items():
        yield unit(f"{name} {match}".strip(), [str(folder / part) for part in parts], match)
    if not match:
        yield from forks(REPEATS)


def forks(repeats):
    file, match = FORKS
    for number in range(1, repeats + 1):
        yield dataclasses.replace(unit(f"forks {number}", [str(root() / file)], match), narrow=None)
    name = "PyDataset"
    yield units.Unit("keras", name, (str(units.FOLDER / "fork_data.py"), name),
                     ("fork_data.py", "train_model.py"), SECONDS,
                     lambda mode, peak, _: modes.tensorflow(mode, peak, hard=False))


def unit(name, paths, match=""):
    options = ("-q", "-p", "keras_recorder", "-p", "no:cacheprovider", "--tb=short",
               "--continue-on-collection-errors", "--rootdir", str(root()))

    def settings(mode, peak, _):
        # The peak of a group comes from tests that hold tensors themselves, so it is a goal and not
        # a limit.
        return {**modes.tensorflow(mode, peak, hard=False), "OUTSIDE_MATCH": match,
                "PYTHONPATH": str(units.FOLDER)}

    return units.Unit("keras", name, ("-m", "pytest", *options, *paths), ("keras_recorder.py",),
                      SECONDS, settings, many=True, narrow=narrow)


def narrow(test):
    """The file of the test."""
    file = test.partition("::")[0]
    return unit(file, [str(root() / file)]) if (root() / file).is_file() else None
