"""Tests of thimble.h written in C."""

def c_test(name, offline = False):
    """Builds NAME.c twice: against the libraries alone, and with their code linked in for ASan.

    Libraries are only ever used without sanitizers, which want to be in the program.

    Args:
      name: of the test; its source is NAME.c.
      offline: whether it uses thimble_offline.h too.
    """
    packages = ["//allocator"] + (["//allocator/offline"] if offline else [])
    sources = [
        name + ".c",
        "expect.h",
    ]
    native.cc_test(
        name = name,
        size = "small",
        srcs = sources + ["//allocator:libthimble.so"] +
               (["//allocator/offline:libthimble_offline.so"] if offline else []),
        deps = ["//allocator:thimble_h"] +
               (["//allocator/offline:thimble_offline_h"] if offline else []),
    )
    native.cc_test(
        name = name + "_static",
        size = "small",
        srcs = sources,
        tags = [
            "asan",
        ],
        deps = [package + ":c_api" for package in packages],
    )
