"""Tests of thimble.h written in C."""

def c_test(name):
    """Builds NAME.c twice: against libthimble.so alone, and with the core linked in for ASan.

    The library is only ever used without sanitizers, which want to be in the program.

    Args:
      name: of the test; its source is NAME.c.
    """
    sources = [
        name + ".c",
        "expect.h",
    ]
    native.cc_test(
        name = name,
        size = "small",
        srcs = sources + ["//allocator:libthimble.so"],
        deps = ["//allocator:thimble_h"],
    )
    native.cc_test(
        name = name + "_static",
        size = "small",
        srcs = sources,
        tags = [
            "asan",
        ],
        deps = ["//allocator:c_api"],
    )
