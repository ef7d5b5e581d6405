"""Shared by all programs of this folder: options, figures of each step, the last line of output."""

import argparse
import json
import time


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


class Steps:
    """For each step, how long it took and the bytes in use after it."""

    def __init__(self):
        super().__init__()
        self.after_step = []
        self.seconds = []
        self._began = time.monotonic()

    def note(self):
        """A step has ended. The next one begins when this returns."""
        self.seconds.append(round(time.monotonic() - self._began, 6))
        self.after_step.append(self.settled())
        self._began = time.monotonic()

    def settled(self):
        """The bytes in use now."""
        return self.now


def report(workload, usage, **more):
    """Prints the result as one line of JSON."""
    line = {"workload": workload, "steps": len(usage.after_step)}
    line.update(peak_bytes=usage.peak, bytes_in_use=usage.now, allocator=usage.allocator)
    line.update(bytes_after_step=usage.after_step, seconds_of_step=usage.seconds, **more)
    print(json.dumps(line), flush=True)
