"""Harmony: trains Keras models that are larger than the memory of all devices together.

    from thimble_gpu import harmony
    harmony.attach(model, memory="10GiB")
    model.fit(...)
"""

import importlib

from thimble_gpu.harmony.errors import HarmonyError

__all__ = ("HarmonyError", "Plan", "Task", "attach", "cpu_devices", "plan", "profile")

_WHERE = {"attach": "attached", "plan": "attached", "profile": "attached", "cpu_devices": "checks",
          "Plan": "plans", "Task": "plans"}


def __getattr__(name):
    """Imports TensorFlow only when it is needed."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
