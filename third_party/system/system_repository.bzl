"""A repository made of headers and libraries that a package of the system installed."""

_LIBRARY_FOLDERS = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
]

def _matches(name, pattern):
    head, star, tail = pattern.partition("*")
    return name == head if not star else name.startswith(head) and name.endswith(tail)

def _find(ctx, pattern):
    for folder in _LIBRARY_FOLDERS:
        path = ctx.path(folder)
        if path.exists:
            found = [file for file in path.readdir() if _matches(file.basename, pattern)]
            if found:
                return found
    return []

def _system_repository_impl(ctx):
    missing = []
    for header in ctx.attr.headers:
        if ctx.path("/usr/include/" + header).exists:
            ctx.symlink("/usr/include/" + header, "include/" + header)
        else:
            missing.append("/usr/include/" + header)
    for pattern in ctx.attr.libraries:
        found = _find(ctx, pattern)
        for library in found:
            ctx.symlink(library, "lib/" + library.basename)
        if not found:
            missing.append(pattern)
    if missing:
        fail(("@%s needs %s, which is not there. './dev test' installs everything; " +
              "by hand: apt-get install %s") % (ctx.name, ", ".join(missing), ctx.attr.package))
    ctx.symlink(ctx.attr.build_file, "BUILD")

system_repository = repository_rule(
    implementation = _system_repository_impl,
    doc = "Links `headers` of /usr/include and `libraries` into a repository.",
    local = True,
    attrs = {
        "build_file": attr.label(mandatory = True, allow_single_file = True),
        "headers": attr.string_list(mandatory = True),
        "libraries": attr.string_list(
            mandatory = True,
            doc = "File names; a single * stands for any text.",
        ),
        "package": attr.string(mandatory = True, doc = "What to install if something is missing."),
    },
)
