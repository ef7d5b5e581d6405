"""THIMBLE_CONF and the variables that turn Thimble on."""

from thimble_gpu import abi
from thimble_gpu.version import FRONT_OPTIONS

VARIABLES = {"tensorflow": "TF_GPU_ALLOCATOR", "jax": "XLA_PYTHON_CLIENT_ALLOCATOR"}
# Keys that only one framework's front knows, and which; the core has the others.
FRONT_KEYS = {key: framework for key, (framework, _) in FRONT_OPTIONS.items()}

_OWN = ",".join(f"{key}:{values}" for key, (_, values) in FRONT_OPTIONS.items())


def entries(conf):
    """Its keys and values as written, and what they imply. Nothing is judged. Nothing is known of
    it in half an installation, of which `thimble doctor` tells."""
    try:
        return abi.installed_core().read_conf(conf, _OWN)[0]
    except OSError:
        return []


def check(conf):
    """Judges it as all fronts together would. Raises ThimbleError."""
    try:
        core = abi.installed_core()
    except OSError as error:
        raise abi.ThimbleError(f"cannot be read: {error}") from error
    core.check(core.read_conf(conf, _OWN)[1])
