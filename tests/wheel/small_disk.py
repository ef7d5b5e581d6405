"""A disk that fills up: a small file system in memory that only one script sees."""

import pathlib
import tempfile

_SCRIPT = 'mount -t tmpfs -o "size=$1" none "$2" && cd "$2" && sh -c "$3"'


def run(site, script, size="64k", **variables):
    """A shell script in the folder of such a disk, in an environment with the wheel."""
    with tempfile.TemporaryDirectory() as folder:
        disk = pathlib.Path(folder) / "disk"
        disk.mkdir()
        return site.run("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _SCRIPT,
                        "sh", size, str(disk), script, **variables)
