"""The wheel, installed by pip into an environment that sees the project's TensorFlow and JAX."""

import glob
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import venv

WHEEL = os.path.abspath(glob.glob("allocator/python/thimble_gpu-*.whl")[0])
LAUNCHER = os.path.abspath("tests/simgpu/run")
# Variables of the user, or of Bazel for the test itself, must not affect a test.
NOT_PASSED_ON = ("PYTHON", "XLA_", "JAX_", "TF_", "THIMBLE_", "CUDA_")

# A program that takes memory as a framework's plugin does, without a framework.
PROGRAM = textwrap.dedent("""
    import ctypes, os, sys
    from thimble_gpu import abi

    core = abi.installed_core()
    arena, block = ctypes.c_void_p(), ctypes.c_void_p()
    core.check(core.create(os.environ["THIMBLE_CONF"].encode(), ctypes.byref(arena)))

    def allocate(bytes):
        zero = ctypes.c_uint64(0)
        core.check(core.allocate(arena, ctypes.c_size_t(bytes), zero, zero, zero,
                                 ctypes.byref(block)))
        return ctypes.c_void_p(block.value)

    def free(block):
        core.check(core.free(arena, block, ctypes.c_uint64(0)))
""")


class Environment:
    """A virtual environment, with the wheel after install(). `at_end` is a test's addCleanup."""

    def __init__(self, at_end, frameworks=True):
        temporary = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        at_end(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        venv.create(self.folder, with_pip=False, symlinks=True)
        version = "python%d.%d" % sys.version_info[:2]
        self.site = self.folder / "lib" / version / "site-packages"
        if frameworks:
            (self.site / "frameworks.pth").write_text(
                f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")

    def pip(self, *arguments):
        python = str(self.folder / "bin" / "python")
        subprocess.run([sys.executable, "-m", "pip", "--python", python, *arguments, "--quiet",
                        "--disable-pip-version-check"], check=True, env=self.variables({}))

    def install(self):
        self.pip("install", "--no-index", "--no-deps", WHEEL)
        return self

    def files(self):
        """All files, except for those that Python compiled."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*")
                      if "__pycache__" not in path.parts)

    def variables(self, own):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(NOT_PASSED_ON)}
        return {**kept, "SIMGPU_PYTHON": str(self.folder / "bin" / "python"),
                "XDG_STATE_HOME": str(self.folder / "state"),  # not the user's machine.json
                "PATH": f"{self.folder / 'bin'}:{kept['PATH']}", "TF_CPP_MIN_LOG_LEVEL": "2", **own}

    def run(self, *command, simulator=None, stdin="", timeout=240, **variables):
        """Ends with stdout, stderr and `said`: the lines on stderr that are Thimble's."""
        if simulator is not None:
            command = (LAUNCHER, *simulator, "--", *command)
        ended = subprocess.run(command, env=self.variables(variables), capture_output=True,
                               text=True, input=stdin, timeout=timeout, check=False)
        ended.said = [line for line in ended.stderr.splitlines() if line.startswith("thimble: ")]
        return ended

    def start(self, *command, **variables):
        """A running process, with pipes for its input and its output."""
        return subprocess.Popen(command, env=self.variables(variables), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)

    def python(self, program, **options):
        return self.run("python", "-c", textwrap.dedent(program), **options)
