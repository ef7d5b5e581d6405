"""Compiler options for code that calls the driver through cuda_abi.h."""

# UBSan compares the type of a function with that of the pointer it is called by. The driver uses
# cuda.h's types, which have other names but the same binary interface; a test compares them.
DRIVER_CALLS = select({
    "//xla_plugin/driver_front:memory_checks": ["-fno-sanitize=function"],
    "//conditions:default": [],
})
