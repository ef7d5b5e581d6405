"""The TensorFlow wheel of the project's Python, as a C++ repository."""

load("//third_party/python:interpreter.bzl", "find_package")

def _version(ctx, wheel):
    """Version of the wheel, from the name of its dist-info: the headers do not say."""
    for folder in wheel.dirname.readdir():
        name = folder.basename
        if name.startswith("tensorflow-") and name.endswith(".dist-info"):
            return name[len("tensorflow-"):-len(".dist-info")]
    fail("@%s: no tensorflow-*.dist-info beside %s" % (ctx.name, wheel))

def _tensorflow_configure_impl(ctx):
    wheel = find_package(ctx, "tensorflow")
    if not wheel:
        fail("@%s: TensorFlow is not installed. './dev test' installs everything." % ctx.name)
    for part in ["include", "libtensorflow_framework.so.2", "libtensorflow_cc.so.2"]:
        ctx.symlink(wheel.get_child(part), part)
    ctx.file(
        "wheel_version.h",
        "#define TENSORFLOW_WHEEL_VERSION \"%s\"\n" % _version(ctx, wheel),
        executable = False,
    )
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
