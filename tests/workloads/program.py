"""Shared by all programs of this folder: the options and the last line of output."""

import argparse
import json


def parser(description, steps=5, batch=32):
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--steps", type=positive, default=steps)
    options.add_argument("--batch", type=positive, default=batch)
    return options


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return number


def report(workload, usage, **more):
    """Prints the result as one line of JSON. `usage` lists the bytes in use after each step."""
    line = {"workload": workload, "steps": len(usage.after_step)}
    line.update(peak_bytes=usage.peak, bytes_in_use=usage.now, allocator=usage.allocator)
    line.update(bytes_after_step=usage.after_step, **more)
    print(json.dumps(line), flush=True)
