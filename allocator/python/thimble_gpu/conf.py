"""Reads THIMBLE_CONF, and names the variables that turn Thimble on."""

from thimble_gpu import abi
from thimble_gpu.version import FRONT_OPTIONS

VARIABLES = {"tensorflow": "TF_GPU_ALLOCATOR", "jax": "XLA_PYTHON_CLIENT_ALLOCATOR"}
# The framework of each key that only one front knows; the core knows the others.
FRONT_KEYS = {key: framework for key, (framework, _) in FRONT_OPTIONS.items()}

_OWN = ",".join(f"{key}:{values}" for key, (_, values) in FRONT_OPTIONS.items())


def entries(conf):
    """Returns keys and values as written, and those that they imply, without checking them. Returns
    nothing if the installation is incomplete, which `thimble doctor` reports."""
    try:
        return abi.installed_core().read_conf(conf, _OWN)[0]
    except OSError:
        return []


def check(conf):
    """Checks it as all fronts together would. Raises ThimbleError."""
    try:
        core = abi.installed_core()
    except OSError as error:
        raise abi.ThimbleError(f"cannot be read: {error}") from error
    core.check(core.read_conf(conf, _OWN)[1])
