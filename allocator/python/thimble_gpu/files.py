"""Files that the command writes for others: whole, or not at all."""

import contextlib
import errno
import os
import shutil

# Beside the file, as allocator/base/whole_file.cc does it for those that the core writes.


def _unfinished(path):
    return f"{os.path.realpath(path)}.{os.getpid()}.tmp"


def _is_special(path):
    return os.path.exists(path) and not os.path.isfile(path)


@contextlib.contextmanager
def replacing(path, mode="w"):
    """A file that takes the place of `path` when all of it is written. An error, such as a full
    disk, leaves what was there, and names `path`. What is no file, such as /dev/stdout, is written
    as it is."""
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
    """Raises the OSError that replacing() would end in for another reason than a full disk."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not _is_special(path):
        with open(_unfinished(path), "w", encoding="utf-8") as file:
            os.unlink(file.name)
