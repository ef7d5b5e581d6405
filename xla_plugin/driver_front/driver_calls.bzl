"""How to compile code that calls the driver through cuda_abi.h."""

# UBSan compares the type of a function with that of the pointer it is called by. The driver has
# cuda.h's types: other names, the same in the binary interface, which a test compares.
DRIVER_CALLS = select({
    "//xla_plugin/driver_front:memory_checks": ["-fno-sanitize=function"],
    "//conditions:default": [],
})
