"""Finds which frameworks are installed and whether Thimble supports them. Imports neither."""

import importlib.metadata
import importlib.util

from thimble_gpu.version import JAXLIB_VERSIONS
from thimble_gpu.version import TENSORFLOW_VERSION


def version(*distributions):
    """Returns the version of the first of these that is installed, or None."""
    for name in distributions:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def tensorflow_version():
    if importlib.util.find_spec("tensorflow") is None:
        return None
    return version("tensorflow", "tensorflow-cpu", "tf-nightly") or "of an unknown version"


def tensorflow_problem():
    """Returns why Thimble cannot serve the installed TensorFlow; "" if it can."""
    found = tensorflow_version()
    if found is None:
        return "TensorFlow is not installed"
    if found != TENSORFLOW_VERSION:
        return (f"TensorFlow is {found}, but this copy of Thimble is for {TENSORFLOW_VERSION}: "
                "install that version")
    return ""


def jax_problem():
    """The same for JAX."""
    jaxlib = version("jaxlib")
    if version("jax") is None or jaxlib is None:
        return "JAX is not installed"
    if jaxlib not in JAXLIB_VERSIONS:
        return (f"jaxlib is {jaxlib}, but Thimble is tested with {', '.join(JAXLIB_VERSIONS)}: "
                "install that version")
    if not any(version(f"jax-cuda{cuda}-plugin") for cuda in (12, 13)):
        return "JAX has no CUDA plugin: install jax[cuda12]"
    return ""
