"""How the command writes and reads."""

import sys


def size(count):
    """Bytes for people."""
    for unit, exponent in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << exponent:
            return f"{count / (1 << exponent):.2f} {unit}"
    return f"{count} bytes"


def say(line):
    """One line of Thimble's own: stdout is the program's."""
    print(f"thimble: {line}", file=sys.stderr, flush=True)


def entries(conf):
    """The keys and values of THIMBLE_CONF, as written. What is malformed is left to the parser."""
    pairs = (entry.partition(":") for entry in conf.split(",") if entry.strip())
    return [(key.strip(), value.strip()) for key, _, value in pairs]
