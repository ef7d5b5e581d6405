"""C++ tests of the pieces of the plugin."""

def tf_test(name):
    """A test of pieces that need no device of TensorFlow: NAME.cc, on host memory.

    Args:
      name: of the test.
    """
    native.cc_test(
        name = name,
        size = "small",
        srcs = [
            name + ".cc",
            "host_arena.h",
            "log_lines.h",
        ],
        deps = [
            "//tf_plugin:allocators",
            "//tf_plugin:announcements",
            "@googletest//:gtest_main",
        ],
    )
