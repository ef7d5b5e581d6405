"""Models of keras.applications and keras_hub, a process each."""

import dataclasses

from tests.outside import models
from tests.outside import modes
from tests.outside import units

SECONDS = 1800  # of tracing and a few steps, on a busy machine


def unit(name):
    def settings(mode, peak, _):
        return modes.tensorflow(mode, peak, hard=True)

    every = units.Unit("models", name, (str(units.FOLDER / "train_model.py"), name),
                       ("train_model.py", "models.py"), SECONDS, settings,
                       modes=tuple(modes.CPU) if name in models.NEED_NUMBERS else modes.ALL)
    # In graphs that need more memory than the CPU device reports, TensorFlow's optimizer makes sums
    # that add up their terms as they arrive. Without the optimizer, every sum has a fixed order.
    steady = dataclasses.replace(every, name=f"{name}, unoptimized",
                                 command=(*every.command, "unoptimized"))
    return dataclasses.replace(every, steady=steady)


def recovering(name, *arguments):
    """Continues after running out of memory; a lower limit makes it run out."""
    return units.Unit("models", name, (str(units.FOLDER / "recover.py"), name, *arguments),
                      ("recover.py", "train_model.py"), SECONDS,
                      lambda mode, peak, _: modes.tensorflow(mode, peak, hard=True),
                      modes=(modes.STOCK, modes.PLAIN, "plan"))


def collection():
    for name in models.NAMES:
        yield unit(name)
    yield recovering("MobileNet recovering")
    yield recovering("MobileNet recovering, XLA", "jit")
