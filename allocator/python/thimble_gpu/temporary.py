"""A folder for files that nobody needs when the command has ended, however it ends."""

import contextlib
import os
import shutil
import subprocess
import tempfile

# Waits for the end of its input, which comes when the last process that holds the other end of the
# pipe is gone. It needs no memory to speak of, and no signal of a terminal reaches it.
_REMOVE = ("sh", "-c", 'read -r _; rm -rf -- "$0"')


@contextlib.contextmanager
def folder(prefix=None):
    """Its path, and the number of a file that keeps it, for processes that shall have it as long
    as they live."""
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
