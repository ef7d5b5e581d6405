"""Packs the libraries, the plugins' files and the Python package into one wheel.

What the wheel puts into site-packages:

    thimble.pth, thimble_boot.py        start the front in a JAX process
    tensorflow-plugins/libthimble_tf.so the plugin that TensorFlow loads
    thimble_gpu/                        the Python package and the command
    thimble_gpu/lib/                    the core, and the libraries that the files above open
    thimble_gpu.libs/                   system libraries that users may not have
"""

import argparse
import ast
import pathlib
import re
import shutil
import tempfile

from allocator.python import libraries
from allocator.python import wheel_file

METADATA = """\
Metadata-Version: 2.1
Name: thimble-gpu
Version: {version}
Summary: A GPU memory allocator for stock TensorFlow and JAX that makes more fit
License: Apache-2.0
Requires-Python: >=3.9
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Description-Content-Type: text/markdown

{readme}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: thimble
Root-Is-Purelib: false
Tag: py3-none-linux_x86_64
"""

VERSIONS = '''\
"""This version, the frameworks it fits and their fronts' options. Written by make_wheel.py."""

__version__ = "{version}"
TENSORFLOW_VERSION = "{tensorflow}"
JAXLIB_VERSIONS = {jaxlib!r}
# The fronts' options: the framework of each, and its values.
FRONT_OPTIONS = {front_options!r}
'''

ENTRY_POINTS = """\
[console_scripts]
thimble = thimble_gpu.cli:main
"""


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True)
    parser.add_argument("--platform", required=True)
    parser.add_argument("--readme", type=pathlib.Path, required=True)
    parser.add_argument("--license", type=pathlib.Path, required=True)
    parser.add_argument("--tensorflow-header", type=pathlib.Path, required=True)
    parser.add_argument("--front-options", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--plugin", type=pathlib.Path, required=True)
    parser.add_argument("--package", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--top", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--libraries", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    return parser.parse_args()


def tensorflow_version(header):
    """Returns the version of TensorFlow that the hooks were built for."""
    return re.search(r'TENSORFLOW_WHEEL_VERSION "(.+)"', header.read_text()).group(1)


def jaxlib_versions(top):
    """Returns the jaxlib versions that the boot module accepts."""
    [boot] = [file for file in top if file.name == "thimble_boot.py"]
    found = re.search(r"^JAXLIB_VERSIONS = (\(.*?\))", boot.read_text(), re.MULTILINE | re.DOTALL)
    return ast.literal_eval(found.group(1))


def front_options(tables):
    """Returns {key: (framework, values)} from the fronts' tables, options.def."""
    option = re.compile(r'^THIMBLE_([A-Z]+)_OPTION\((\w+), "\w+", "([\w|]+)"', re.MULTILINE)
    return {key: (framework.lower(), values) for table in tables
            for framework, key, values in option.findall(table.read_text())}


def lay_out(options, site):
    """Writes everything but RECORD as it will lie in site-packages; returns RECORD's name."""
    package = site / "thimble_gpu"
    for library in options.libraries:
        libraries.install(library, package / "lib", "$ORIGIN")
    libraries.install(options.plugin, site / "tensorflow-plugins", "$ORIGIN/../thimble_gpu/lib")
    for file in options.package:
        place = site / pathlib.Path(*file.parts[file.parts.index("thimble_gpu"):])
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
    (package / "version.py").write_text(VERSIONS.format(
        version=options.version, tensorflow=tensorflow_version(options.tensorflow_header),
        jaxlib=jaxlib_versions(options.top), front_options=front_options(options.front_options)))
    for file in options.top:
        shutil.copyfile(file, site / file.name)
    information = site / f"thimble_gpu-{options.version}.dist-info"
    information.mkdir()
    metadata = METADATA.format(version=options.version, readme=options.readme.read_text())
    (information / "METADATA").write_text(metadata)
    (information / "WHEEL").write_text(WHEEL)
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
    shutil.copyfile(options.license, information / "LICENSE")
    return f"{information.name}/RECORD"


def main():
    options = parse()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        site = folder / "site"
        site.mkdir()
        record = lay_out(options, site)
        plain = folder / f"thimble_gpu-{options.version}-py3-none-linux_x86_64.whl"
        wheel_file.write(plain, site, record)
        libraries.bundle(plain, options.platform, folder / "repaired")
        [repaired] = (folder / "repaired").iterdir()
        if repaired.name != options.out.name:
            raise SystemExit(f"make_wheel: auditwheel made {repaired.name}, not {options.out.name}")
        # auditwheel writes the time of day into its zip file.
        wheel_file.unpack(repaired, folder / "final")
        wheel_file.write(options.out, folder / "final", record)


if __name__ == "__main__":
    main()
