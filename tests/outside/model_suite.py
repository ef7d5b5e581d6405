"""Models of keras.applications and keras_hub, a process each."""

from tests.outside import models
from tests.outside import modes
from tests.outside import units

SECONDS = 1800  # of tracing and a few steps, on a busy machine


def unit(name):
    return units.Unit("models", name, (str(units.FOLDER / "train_model.py"), name),
                      ("train_model.py", "models.py"), SECONDS,
                      lambda mode, peak, _: modes.tensorflow(mode, peak, hard=True),
                      modes=modes.ALL)


def recovering(name, *arguments):
    """Goes on after an out of memory: where a lower limit is an out of memory."""
    return units.Unit("models", name, (str(units.FOLDER / "recover.py"), name, *arguments),
                      ("recover.py", "train_model.py"), SECONDS,
                      lambda mode, peak, _: modes.tensorflow(mode, peak, hard=True),
                      modes=(modes.STOCK, modes.PLAIN, "plan"))


def collection():
    for name in models.NAMES:
        yield unit(name)
    yield recovering("MobileNet recovering")
    yield recovering("MobileNet recovering, XLA", "jit")
