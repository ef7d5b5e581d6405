"""The one place that knows the version of the wheel."""

VERSION = "0.2.0"

# The glibc of Debian 12, on which the libraries are built. auditwheel proves it.
PLATFORM = "manylinux_2_36_x86_64"
