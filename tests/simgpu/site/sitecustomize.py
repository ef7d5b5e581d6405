"""Makes JAX look for a GPU: it does so only on machines with a file of NVIDIA's kernel driver.

Python runs the first module of this name that it finds, so this one runs the next one.
"""

import importlib.machinery
import importlib.util
import os
import sys

_exists = os.path.exists


def exists(path):
    return path == "/dev/nvidiactl" or _exists(path)


os.path.exists = exists

_here = os.path.dirname(os.path.abspath(__file__))
_others = [path for path in sys.path if os.path.abspath(path) != _here]
_next = importlib.machinery.PathFinder.find_spec("sitecustomize", _others)
if _next is not None:
    _next.loader.exec_module(importlib.util.module_from_spec(_next))
