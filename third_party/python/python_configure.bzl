"""A Python toolchain that runs on the project's interpreter."""

load("//third_party/python:interpreter.bzl", "interpreter")

_BUILD = """
load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

py_runtime(
    name = "runtime",
    interpreter_path = "{python}",
    python_version = "PY3",
    stub_shebang = "#!{python}",
)

py_runtime_pair(
    name = "pair",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    toolchain = ":pair",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)
"""

def _python_configure_impl(ctx):
    ctx.file("BUILD", _BUILD.format(python = interpreter(ctx)))

python_configure = repository_rule(
    implementation = _python_configure_impl,
    local = True,
    environ = ["THIMBLE_PYTHON"],
)
