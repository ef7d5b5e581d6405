"""One simulated library of CUDA's."""

def simulated_library(name, library, srcs = []):
    """Links the generated stubs of a library with what is written by hand.

    Args:
      name: the file, which is also the soname: libcudart.so.12.
      library: what stubs.py calls it: cudart.
      srcs: sources whose functions go before the stubs of the same name.
    """
    native.cc_binary(
        name = name,
        testonly = True,
        srcs = srcs + [
            "driver.cc",
            "driver.h",
            library + "_stubs.c",
        ],
        copts = ["-fvisibility=hidden"],
        linkopts = [
            "-Wl,-soname," + name,
            # The frameworks export functions of the same names, which call ours: so ours must not
            # find theirs.
            "-Wl,-Bsymbolic",
            "-ldl",
            "-lpthread",
        ],
        linkshared = True,
        deps = [
            "//tests/simgpu/driver:control",
            "@cuda//:headers",
        ],
    )
