"""Reads and writes wheels: zip files whose RECORD lists every file with its checksum."""

import base64
import hashlib
import zipfile

TIME = (2020, 1, 1, 0, 0, 0)  # time of every file, so that the same contents give the same wheel


def checksum(data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return "sha256=" + digest.rstrip(b"=").decode()


def write(path, folder, record):
    """Packs all files of `folder` and a RECORD named `record`."""
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            name = file.relative_to(folder).as_posix()
            if name == record:
                continue
            data = file.read_bytes()
            mode = 0o755 if file.suffix == ".so" or ".so." in file.name else 0o644
            _add(wheel, name, data, mode)
            lines.append(f"{name},{checksum(data)},{len(data)}\n")
        lines.append(f"{record},,\n")
        _add(wheel, record, "".join(lines).encode(), 0o644)


def unpack(path, folder):
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(folder)


def _add(wheel, name, data, mode):
    info = zipfile.ZipInfo(name, TIME)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (0o100000 | mode) << 16
    wheel.writestr(info, data)
