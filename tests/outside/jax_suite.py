"""Programs of flax and optax on the simulated GPU, a process each."""

import ast

from tests.outside import modes
from tests.outside import units

SECONDS = 1200  # of compiling, mostly, on a busy machine
MEMORY = "16GiB"


def settings(mode, _, path):
    """A program is compiled once for all modes. Requests are read from the driver's or the arena's
    log."""
    variables = {**modes.JAX[mode], "SIMGPU_CONF": f"memory:{MEMORY}", "JAX_PLATFORMS": "cuda",
                 "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
                 "JAX_COMPILATION_CACHE_DIR": str(path.parents[1] / "compiled"),
                 "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                 "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    if mode == modes.STOCK:
        calls = str(path.with_suffix(".calls"))
        return {**variables, "SIMGPU_CONF": f"memory:{MEMORY},log:{calls}", "OUTSIDE_CALLS": calls}
    events = str(path.with_suffix(".events"))
    conf = [variables.get("THIMBLE_CONF"), f"log:{events}"]
    return {**variables, "THIMBLE_CONF": ",".join(filter(None, conf)), "OUTSIDE_EVENTS": events}


def unit(name):
    return units.Unit("jax", name, (str(units.FOLDER / "run_jax.py"), name),
                      ("run_jax.py", "jax_programs.py"), SECONDS, settings, tuple(modes.JAX))


def names():
    """Reads the names from the text of jax_programs.py, because importing it takes seconds."""
    tree = ast.parse((units.FOLDER / "jax_programs.py").read_text())
    return [node.name for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.decorator_list]


def collection():
    for name in names():
        yield unit(name)
