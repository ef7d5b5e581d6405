"""What every folder of sources has."""

def layer_sources():
    """The folder's C and C++, as //tests/layering reads it."""
    native.filegroup(
        name = "sources",
        srcs = native.glob([
            "*.c",
            "*.cc",
            "*.cu",
            "*.def",
            "*.h",
        ], allow_empty = True),
        visibility = ["//tests:__subpackages__"],
    )
