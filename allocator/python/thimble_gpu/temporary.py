"""Makes temporary folders that disappear when the command ends, however it ends."""

import contextlib
import os
import shutil
import subprocess
import tempfile

# Waits for the end of its input, which comes when the last process with the other end of the pipe
# has ended. It needs almost no memory, and a terminal's signals do not reach it.
_REMOVE = ("sh", "-c", 'read -r _; rm -rf -- "$0"')


@contextlib.contextmanager
def folder(prefix=None):
    """Yields the path of a new folder and a file descriptor. The folder lasts until all processes
    that have the descriptor have ended."""
    path = tempfile.mkdtemp(prefix=prefix)
    end, kept = os.pipe()
    try:
        with contextlib.suppress(FileNotFoundError):  # a machine without a shell
            subprocess.Popen((*_REMOVE, path), stdin=end, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True, cwd="/")
        os.close(end)
        yield path, kept
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(kept)
