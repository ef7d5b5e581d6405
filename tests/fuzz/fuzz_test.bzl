"""Fuzz targets that also guard every other build: what the fuzzer once found is replayed."""

def fuzz_test(name, deps, max_len = 4096):
    """Builds NAME.cc, which defines LLVMFuzzerTestOneInput, twice.

    NAME runs under --config=asan: the corpus in tests/corpus/NAME, then libFuzzer for a few
    seconds, always with the same seed. NAME_corpus only replays the corpus, in the default build.

    To find more: build NAME with --config=asan, run it on a folder of your own for as long as you
    like, and keep what -merge=1 keeps.

    Args:
      name: of the target; its source is NAME.cc.
      deps: what the source needs.
      max_len: the longest input to try, in bytes.
    """
    corpus = "//tests/corpus:" + name
    folder = "tests/corpus/" + name
    sources = [
        name + ".cc",
        "input.h",
    ]
    native.cc_test(
        name = name,
        size = "small",
        srcs = sources + ["under_bazel.cc"],
        args = [
            folder,
            "-seed=1",
            "-max_total_time=15",
            "-timeout=10",
            "-max_len=%d" % max_len,
        ],
        data = [corpus],
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["fuzz"],
        deps = deps,
    )
    native.cc_test(
        name = name + "_corpus",
        size = "small",
        srcs = sources + ["replay_main.cc"],
        args = [folder],
        data = [corpus],
        deps = deps,
    )
