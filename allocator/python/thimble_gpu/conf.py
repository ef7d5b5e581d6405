"""THIMBLE_CONF and the variables that turn Thimble on."""

from thimble_gpu import abi

# Keys that only one framework's plugin knows; the core has the others.
PLUGIN_KEYS = {"front": "tensorflow", "cumemalloc": "jax"}
VARIABLES = {"tensorflow": "TF_GPU_ALLOCATOR", "jax": "XLA_PYTHON_CLIENT_ALLOCATOR"}


def entries(conf):
    """Its keys and values, as written. What is malformed is left to the parser."""
    pairs = (entry.partition(":") for entry in conf.split(",") if entry.strip())
    return [(key.strip(), value.strip()) for key, _, value in pairs]


def check(conf):
    """The part that is the core's, judged by its parser. Raises ThimbleError."""
    own = [f"{key}:{value}" for key, value in entries(conf) if key not in PLUGIN_KEYS]
    core = abi.installed_core()
    core.check(core.check_options(",".join(own).encode(), 0))
