"""Shows what the command is doing and for how long, on one line of stderr.

Writes only if stderr is a terminal. The work is mostly one call of the core, which lets other
threads run; one thread counts the seconds.
"""

import sys
import threading
import time

REFRESH = 0.25  # seconds
WIDTH = 20
CLEAR = "\r\x1b[K"


class Progress:
    """`with Progress("gpt2.csv", seconds=5):` shows a bar; without `seconds`, a counter."""

    def __init__(self, text, seconds=None):
        self._text = text
        self._seconds = seconds
        self._over = threading.Event()
        self._thread = None

    def __enter__(self):
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._count, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error):
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            print(CLEAR, end="", file=sys.stderr, flush=True)

    def _count(self):
        begin = time.monotonic()
        while True:
            print(CLEAR + self._line(time.monotonic() - begin), end="", file=sys.stderr, flush=True)
            if self._over.wait(REFRESH):
                return

    def _line(self, taken):
        if not self._seconds:
            return f"{self._text}  {taken:.0f} s"
        filled = min(WIDTH, int(WIDTH * taken / self._seconds))
        return (f"{self._text}  [{'#' * filled}{'-' * (WIDTH - filled)}]  {taken:.0f} of "
                f"{self._seconds:g} s")
