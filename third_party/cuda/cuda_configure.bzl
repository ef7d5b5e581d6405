"""The CUDA toolkit as a repository: cuda.h, the static runtime, and where nvcc is."""

load("//third_party/python:interpreter.bzl", "find_package")

def _candidates(ctx):
    """Toolkit roots, best first. The wheels come last: a machine's own toolkit fits its driver."""
    named = ctx.os.environ.get("CUDA_HOME")
    if named:
        return [ctx.path(named)]  # A user who names a toolkit wants that one or an error.
    wheels = find_package(ctx, "nvidia")
    return [ctx.path("/usr/local/cuda")] + ([wheels.get_child("cu13")] if wheels else [])

def _runtime(root):
    for folder in ["lib64", "lib"]:
        archive = root.get_child(folder).get_child("libcudart_static.a")
        if archive.exists:
            return archive
    return None

def _cuda_configure_impl(ctx):
    candidates = _candidates(ctx)
    roots = [r for r in candidates if r.get_child("include").get_child("cuda.h").exists]
    if not roots:
        fail("@%s: no include/cuda.h in %s. './dev test' installs it, unless CUDA_HOME is set." %
             (ctx.name, " or ".join([str(candidate) for candidate in candidates])))
    root = roots[0]
    ctx.symlink(root.get_child("include"), "include")

    # Headers are enough for most of the project, and a toolkit may be headers only.
    compiler = root.get_child("bin").get_child("nvcc")
    runtime = _runtime(root)
    usable = compiler.exists and runtime
    if usable:
        ctx.symlink(runtime, "libcudart_static.a")
    ctx.file("nvcc.bzl", "NVCC = \"%s\"\n" % (compiler if usable else ""))
    ctx.symlink(ctx.attr._build_file, "BUILD")

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    local = True,
    environ = [
        "CUDA_HOME",
        "THIMBLE_PYTHON",
    ],
    attrs = {
        "_build_file": attr.label(
            default = "//third_party/cuda:cuda.BUILD",
            allow_single_file = True,
        ),
    },
)
