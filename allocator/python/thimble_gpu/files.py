"""Writes files completely or not at all."""

import contextlib
import errno
import os
import shutil

# The temporary file lies beside the target, as in allocator/base/whole_file.cc.


def _unfinished(path):
    return f"{os.path.realpath(path)}.{os.getpid()}.tmp"


def _is_special(path):
    return os.path.exists(path) and not os.path.isfile(path)


@contextlib.contextmanager
def replacing(path, mode="w"):
    """Opens a file that replaces `path` once it is completely written. An error, such as a full
    disk, keeps the old file and names `path`. Special files, such as /dev/stdout, are written
    directly."""
    unfinished = path if _is_special(path) else _unfinished(path)
    try:
        with open(unfinished, mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
        if unfinished != path:
            if os.path.exists(path):
                shutil.copymode(path, unfinished)
            os.replace(unfinished, os.path.realpath(path))
    except BaseException as error:
        if unfinished != path:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, path) from error
        raise


def check(path):
    """Raises the OSError that replacing() would raise, unless the disk is full."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not _is_special(path):
        with open(_unfinished(path), "w", encoding="utf-8") as file:
            os.unlink(file.name)
