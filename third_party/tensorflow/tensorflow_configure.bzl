"""The TensorFlow wheel of the project's Python, as a C++ repository."""

load("//third_party/python:interpreter.bzl", "find_package")

def _tensorflow_configure_impl(ctx):
    wheel = find_package(ctx, "tensorflow")
    if not wheel:
        fail("@%s: TensorFlow is not installed. './dev test' installs everything." % ctx.name)
    for part in ["include", "libtensorflow_framework.so.2", "libtensorflow_cc.so.2"]:
        ctx.symlink(wheel.get_child(part), part)
    ctx.symlink(ctx.attr._build_file, "BUILD")

tensorflow_configure = repository_rule(
    implementation = _tensorflow_configure_impl,
    local = True,
    environ = ["THIMBLE_PYTHON"],
    attrs = {
        "_build_file": attr.label(
            default = "//third_party/tensorflow:tensorflow.BUILD",
            allow_single_file = True,
        ),
    },
)
