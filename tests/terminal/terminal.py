"""Runs a program whose stdout or stderr is a terminal, and sees what is written there."""

import fcntl
import os
import pty
import select
import subprocess
import termios
import time


class Program:
    """A process with a terminal in the place of `of` its streams; the others are files."""

    def __init__(self, command, of=("stdout", "stderr"), **options):
        self._master, slave = pty.openpty()
        streams = {name: slave if name in of else subprocess.PIPE for name in ("stdout", "stderr")}
        self.process = subprocess.Popen(command, stdin=slave, start_new_session=True,
                                        preexec_fn=_take_terminal, **streams, **options)
        os.close(slave)
        self.seen = ""

    def read_until(self, text, times=1, seconds=60):
        """Returns whether the terminal showed it `times` times before the timeout or the program's
        end."""
        deadline = time.monotonic() + seconds
        while self.seen.count(text) < times and time.monotonic() < deadline:
            if not self._read(0.1) and self.process.poll() is not None:
                break
        return self.seen.count(text) >= times

    def press(self, keys):
        os.write(self._master, keys.encode())

    def end(self, seconds=120):
        """Returns the output of the stream that is not a terminal; `seen` has the other."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(0.1)
        while self._read(0):
            pass
        os.close(self._master)
        out, error = self.process.communicate(timeout=max(1, deadline - time.monotonic()))
        return (out or error or b"").decode()

    def _read(self, seconds):
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            self.seen += os.read(self._master, 65536).decode(errors="replace")
        except OSError:  # nobody has the other end any more
            return False
        return True


def _take_terminal():
    """So that Ctrl-C is a signal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
