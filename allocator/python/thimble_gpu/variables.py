"""Checks the environment variables about memory: which of those that are set have an effect."""

from thimble_gpu import abi
from thimble_gpu import conf

HONOURED, IGNORED, WRONG = "ok", "ignored", "wrong"

TF = "TF_GPU_ALLOCATOR"
XLA = "XLA_PYTHON_CLIENT_ALLOCATOR"
CONF = "THIMBLE_CONF"
CLIENT_OPTIONS = "JAX_PJRT_CLIENT_CREATE_OPTIONS"  # key:value;key:value

# Variables of each framework when Thimble serves it.
_TENSORFLOW = {
    "TF_FORCE_GPU_ALLOW_GROWTH": (HONOURED, "true: memory grows as needed"),
    "TF_PER_DEVICE_MEMORY_LIMIT_MB": (HONOURED, "TensorFlow uses it as the limit"),
    "TF_DEVICE_MIN_SYS_MEMORY_IN_MB": (HONOURED, "TensorFlow subtracts it from the limit"),
    "TF_GPU_HOST_MEM_LIMIT_IN_MB": (HONOURED, "TensorFlow uses it for host memory"),
    "TF_ENABLE_GPU_GARBAGE_COLLECTION": (IGNORED, "it is for BFC: Thimble has nothing to collect"),
    "TF_BFC_MEMORY_DUMP": (IGNORED, "it is for BFC: use thimble_gpu.snapshot()"),
}
_JAX = {
    "XLA_CLIENT_MEM_FRACTION": (HONOURED, "the limit, as a part of the device"),
    "XLA_PYTHON_CLIENT_MEM_FRACTION": (HONOURED, "the limit; new name: XLA_CLIENT_MEM_FRACTION"),
    "XLA_PYTHON_CLIENT_PREALLOCATE": (HONOURED, "true: the arena takes its limit at once"),
    "XLA_CLIENT_COLLECTIVE_MEM_SIZE_MB": (IGNORED, "collectives use the same arena"),
    "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB": (IGNORED, "collectives use the same arena"),
}


def is_on(environment, framework):
    """Whether the variables ask for Thimble."""
    if framework == "jax":
        return environment.get(XLA, "").lower() == "thimble"
    return environment.get(TF) == "thimble" or wants_cpu(environment)


def wants_cpu(environment):
    return ("device", "cpu") in conf.entries(environment.get(CONF, ""))


def check(environment):
    """Yields (variable, status, explanation) for every variable that is set."""
    yield from _switch(environment, TF, environment.get(TF) == "thimble", "TensorFlow")
    yield from _switch(environment, XLA, is_on(environment, "jax"), "JAX")
    yield from _conf(environment)
    for framework, table in (("tensorflow", _TENSORFLOW), ("jax", _JAX)):
        for name, (status, meaning) in table.items():
            if name in environment and is_on(environment, framework):
                yield name, status, f"{environment[name]}: {meaning}"
    yield from _contradictions(environment)


def _switch(environment, name, on, framework):
    value = environment.get(name)
    if value is None:
        return
    if on:
        yield name, HONOURED, f"{value}: Thimble serves {framework}"
    else:
        yield name, IGNORED, (f"{value}: {framework} does not use Thimble. To turn it on, set "
                              f"{name}=thimble")


def _conf(environment):
    if CONF not in environment:
        return
    options = environment[CONF]
    try:
        conf.check(options)
    except abi.ThimbleError as error:
        yield CONF, WRONG, str(error)
        return
    if not any(is_on(environment, framework) for framework in conf.VARIABLES):
        yield CONF, IGNORED, f"{options}: neither {TF} nor {XLA} is 'thimble'"
        return
    yield CONF, HONOURED, options
    for key, value in conf.entries(options):
        if key == "device" and value != "cpu":
            yield CONF, WRONG, f"device:{value}: the framework chooses the GPUs: leave it out"
        elif key in ("device", "driver", "peers") and is_on(environment, "jax"):
            yield CONF, WRONG, f"{key}:{value}: JAX chooses this: leave it out, or unset {XLA}"
        elif key in conf.FRONT_KEYS:
            other = (conf.VARIABLES.keys() - {conf.FRONT_KEYS[key]}).pop()
            if is_on(environment, other):
                yield CONF, WRONG, (f"{key}:{value}: {other} does not know this option: leave it "
                                    f"out, or unset {conf.VARIABLES[other]}")


def _contradictions(environment):
    keys = dict(conf.entries(environment.get(CONF, "")))
    if wants_cpu(environment) and environment.get(TF) == "thimble":
        yield CONF, WRONG, f"device:cpu and {TF}=thimble contradict each other: unset one"
    fractions = [name for name in ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")
                 if name in environment]
    if len(fractions) == 2:
        yield fractions[0], WRONG, (f"and {fractions[1]} are the same setting, and JAX refuses "
                                    "both together: unset one")
    elif fractions and "limit" in keys and is_on(environment, "jax"):
        yield fractions[0], WRONG, "and 'limit' in THIMBLE_CONF both set the limit: unset one"
    if environment.get("CUDA_VISIBLE_DEVICES") in ("", "-1") and not wants_cpu(environment):
        yield ("CUDA_VISIBLE_DEVICES", WRONG,
               f"{environment['CUDA_VISIBLE_DEVICES']!r} hides every GPU: unset it")
    yield from _client_options(environment)
    platforms = environment.get("JAX_PLATFORMS", "")
    if is_on(environment, "jax") and platforms and not {"cuda", "gpu"} & set(platforms.split(",")):
        yield "JAX_PLATFORMS", WRONG, f"{platforms}: this keeps JAX off the GPU: unset it"


def _client_options(environment):
    for entry in environment.get(CLIENT_OPTIONS, "").split(";"):
        key, _, value = entry.partition(":")
        if key == "allocator" and value != "cuda_async" and is_on(environment, "jax"):
            yield CLIENT_OPTIONS, WRONG, (f"allocator:{value} overrides {XLA}: leave it out "
                                          "there")
