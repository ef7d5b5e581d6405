"""cuda_library: C++ and CUDA sources through nvcc, usable by every cc_* rule.

The attributes are those of cuda_library in bazel-contrib/rules_cuda, so that a project which has
that rule set replaces the load line and nothing else. It cannot be downloaded where Thimble builds.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@cuda//:nvcc.bzl", "NVCC")

# PTX for the oldest architecture that every supported nvcc knows (Turing): the driver compiles it
# for whatever GPU it finds.
_ARCHITECTURE = "-arch=compute_75"

def _host(options):
    """The host compiler's options as nvcc takes them."""
    return ["-Xcompiler=" + option for option in options]

def _own_includes(ctx):
    folders = []
    for include in ctx.attr.includes:
        parts = [ctx.label.workspace_root, ctx.label.package, include]
        path = "/".join([part for part in parts if part])
        folders += [path, ctx.bin_dir.path + "/" + path]
    return folders

def _compile(ctx, toolchain, source, context, pic):
    output = ctx.actions.declare_file("_objs/%s/%s%s.o" % (
        ctx.label.name,
        source.basename,
        ".pic" if pic else "",
    ))
    args = ctx.actions.args()
    args.add_all(["-c", _ARCHITECTURE, "-ccbin", toolchain.compiler_executable])
    args.add_all([flag for flag in ctx.fragments.cpp.cxxopts if flag.startswith("-std=")])
    args.add_all(context.includes, before_each = "-I")
    args.add_all(context.quote_includes, before_each = "-I")  # nvcc has no -iquote
    args.add_all(context.system_includes, before_each = "-isystem")
    args.add_all(context.defines, before_each = "-D")
    args.add_all(ctx.attr.local_defines, before_each = "-D")
    args.add_all(ctx.attr.copts)
    args.add_all(["-Xptxas=" + option for option in ctx.attr.ptxasopts])
    args.add_all(_host((["-fPIC"] if pic else []) + ctx.attr.host_copts))
    args.add(source)
    args.add("-o", output)
    ctx.actions.run(
        executable = NVCC,
        arguments = [args],
        inputs = depset(ctx.files.srcs, transitive = [context.headers, toolchain.all_files]),
        outputs = [output],
        env = {"PATH": "/usr/bin:/bin"},  # nvcc calls its siblings by path, the host tools by name.
        mnemonic = "CudaCompile",
        progress_message = "Compiling %s with nvcc" % source.short_path,
    )
    return output

def _cuda_library_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    deps = [dep[CcInfo] for dep in ctx.attr.deps + [ctx.attr._runtime]]
    public = cc_common.create_compilation_context(
        headers = depset(ctx.files.hdrs),
        includes = depset(_own_includes(ctx)),
        quote_includes = depset([".", ctx.bin_dir.path]),
        defines = depset(ctx.attr.defines),
    )
    info = cc_common.merge_cc_infos(
        direct_cc_infos = [CcInfo(compilation_context = public)],
        cc_infos = deps,
    )
    sources = [file for file in ctx.files.srcs if file.extension in ("cu", "cc")]
    objects, pic_objects = [
        depset([_compile(ctx, toolchain, s, info.compilation_context, pic) for s in sources])
        for pic in (False, True)
    ]
    linking_context, outputs = cc_common.create_linking_context_from_compilation_outputs(
        name = ctx.label.name,
        actions = ctx.actions,
        feature_configuration = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain),
        cc_toolchain = toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = objects,
            pic_objects = pic_objects,
        ),
        user_link_flags = ctx.attr.host_linkopts,
        alwayslink = ctx.attr.alwayslink,
        linking_contexts = [dep.linking_context for dep in deps],
        disallow_dynamic_library = True,
    )
    library = outputs.library_to_link
    return [
        DefaultInfo(files = depset([
            archive
            for archive in (library.static_library, library.pic_static_library)
            if archive
        ])),
        CcInfo(
            compilation_context = info.compilation_context,
            linking_context = linking_context,
        ),
    ]

cuda_library = rule(
    implementation = _cuda_library_impl,
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu", ".cc", ".cuh", ".h"]),
        "hdrs": attr.label_list(allow_files = [".cuh", ".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "alwayslink": attr.bool(doc = "Keep objects nobody refers to, such as registered tests."),
        "includes": attr.string_list(doc = "Include folders, relative to the package."),
        "copts": attr.string_list(doc = "Options of nvcc itself."),
        "host_copts": attr.string_list(doc = "Options nvcc hands to the host compiler."),
        "ptxasopts": attr.string_list(doc = "Options nvcc hands to ptxas."),
        "defines": attr.string_list(doc = "Macros for this target and all its users."),
        "local_defines": attr.string_list(doc = "Macros for this target alone."),
        "host_linkopts": attr.string_list(doc = "Options for the link of every user."),
        "_runtime": attr.label(default = "@cuda//:runtime"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
)
