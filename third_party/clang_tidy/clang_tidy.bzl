"""An aspect that runs clang-tidy over the sources of cc_* targets, as they are compiled."""

# clang knows more than the compiler of the default build: most of all, who holds which lock.
_WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Wold-style-cast",
    "-Wreserved-identifier",
    "-Wthread-safety",
]

# clang's analyzer follows at most so many states of a function. Without a bound it takes six
# sevenths of the time of all checks.
_BOUND = ["-Xclang", "-analyzer-config", "-Xclang", "max-nodes=10000"]

def _flags(ctx, context):
    flags = ctx.fragments.cpp.cxxopts + _WARNINGS + _BOUND
    for option, values in [
        ("-I", context.includes),
        ("-iquote", context.quote_includes),
        ("-isystem", context.system_includes),
        ("-D", context.defines),
        ("-D", context.local_defines),
    ]:
        for value in values.to_list():
            flags += [option, value]
    return flags

def _clang_tidy_impl(target, ctx):
    if CcInfo not in target or not hasattr(ctx.rule.files, "srcs"):
        return []
    context = target[CcInfo].compilation_context
    headers = [file for file in ctx.rule.files.srcs if file.extension == "h"]
    reports = []
    for source in ctx.rule.files.srcs:
        if source.extension != "cc":
            continue
        report = ctx.actions.declare_file("%s.%s.tidy" % (target.label.name, source.basename))
        ctx.actions.run_shell(
            # Shown on failure only: even without findings it counts the warnings it ignored.
            command = "clang-tidy --quiet \"${@:2}\" &>$1 || { cat $1; exit 1; }",
            arguments = [
                report.path,
                "--config-file=" + ctx.file._config.path,
                source.path,
                "--",
            ] + _flags(ctx, context),
            inputs = depset([source, ctx.file._config] + headers, transitive = [context.headers]),
            outputs = [report],
            mnemonic = "ClangTidy",
            progress_message = "Checking %s with clang-tidy" % source.short_path,
            use_default_shell_env = True,
        )
        reports.append(report)
    return [OutputGroupInfo(clang_tidy = depset(reports))]

clang_tidy = aspect(
    implementation = _clang_tidy_impl,
    fragments = ["cpp"],
    attrs = {"_config": attr.label(default = "//:.clang-tidy", allow_single_file = True)},
)
