"""Thimble as its wheel installs it: a folder that Python treats as site-packages."""

import pathlib
import shutil

BOOT = ("xla_plugin/boot/thimble_boot.py", "xla_plugin/boot/thimble.pth")
LIBRARIES = ("xla_plugin/driver_front/libthimble_xla.so", "allocator/libthimble.so")
TENSORFLOW_PLUGIN = pathlib.Path("tf_plugin/libthimble_tf.so")

ADD_SITE = """\
import os, site
site.addsitedir(os.path.dirname(os.path.abspath(__file__)))
"""


def install_for_jax(folder):
    """Fills a folder that PYTHONPATH is to name."""
    libraries = folder / "thimble_gpu" / "lib"
    libraries.mkdir(parents=True)
    for file in BOOT:
        shutil.copy(file, folder)
    for file in map(pathlib.Path, LIBRARIES):
        (libraries / file.name).symlink_to(file.resolve())
    (folder / "sitecustomize.py").write_text(ADD_SITE)


def install(folder):
    """Installs the wheel's files for both frameworks. Returns the variables with which a program
    finds them."""
    install_for_jax(folder)
    # TensorFlow looks for plugins in the real site-packages only, or where this says.
    plugin = str(TENSORFLOW_PLUGIN.resolve())
    return {"PYTHONPATH": str(folder), "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": plugin}
