"""Tests that differ only in their names."""

def cc_tests(names, deps, tags = ["asan"]):
    """Makes a small test of NAME.cc for each name, with GoogleTest's main().

    Args:
      names: of the tests.
      deps: of each of them, besides GoogleTest.
      tags: the sanitizers under which they make sense.
    """
    for name in names:
        native.cc_test(
            name = name,
            size = "small",
            srcs = [name + ".cc"],
            tags = tags,
            deps = deps + ["@googletest//:gtest_main"],
        )
