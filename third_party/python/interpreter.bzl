"""The project's Python interpreter, for repository rules."""

def interpreter(ctx):
    """Returns the path of the interpreter: THIMBLE_PYTHON, else the one in .venv.

    Args:
      ctx: the context of a repository rule that lists THIMBLE_PYTHON in its environ.
    """

    # Read for its side effect: the repository is made again when a requirement changes.
    ctx.read(Label("//third_party/python:requirements.txt"))
    named = ctx.os.environ.get("THIMBLE_PYTHON")
    python = ctx.path(named or str(ctx.path(Label("//:WORKSPACE")).dirname) + "/.venv/bin/python")
    if not python.exists:
        fail("@%s: no Python at %s. './dev test' installs everything." % (ctx.name, python))
    return python

def find_package(ctx, name):
    """Returns the folder of a Python package, or None. Does not import it: TensorFlow is slow."""
    found = ctx.execute([interpreter(ctx), "-c", """
import importlib.util
spec = importlib.util.find_spec("%s")
print(list(spec.submodule_search_locations)[0] if spec else "")
""" % name])
    if found.return_code != 0:
        fail("@%s: looking for the Python package %s: %s" % (ctx.name, name, found.stderr))
    folder = found.stdout.strip()
    return ctx.path(folder) if folder else None
