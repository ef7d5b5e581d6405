"""The tests that cover the core, and how to call Bazel."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("base", "vmm", "stitch", "plan", "swap", "arena")

# Tests of C++ that link the core, without those
# - that need a fuzzer, a framework or a GPU;
# - of Harmony, of the simulated GPU and of other allocators, which are about other code;
# - of libthimble.so and of broken CUDA libraries, which are not what they should be if the core is
#   in libraries of its own; the tests in C are there a second time, with c_api linked in.
TESTS = """
    kind("cc_test rule", rdeps(//tests/..., {core}))
    except attr(tags, "\\bfuzz\\b", //tests/...)
    except rdeps(//tests/..., //allocator:libthimble.so)
    except filter("//tests/(cuda|harmony|simgpu|tf_plugin|xla_plugin)[:/]", //tests/...)
    except filter(":(block_list|cuda_open|peers)_test$", //tests/...)
""".format(core=" + ".join(f"//allocator/{folder}:all" for folder in FOLDERS))


def say(*words):
    print(*words, file=sys.stderr, flush=True)


class Bazel:
    """Bazel in a tree, with an output base of its own if one is named."""

    def __init__(self, tree=ROOT, output_base=None):
        self._tree = tree
        self._command = ["bazel"] + ([f"--output_base={output_base}"] if output_base else [])

    def run(self, *arguments):
        """The exit status, and all that was said."""
        done = subprocess.run([*self._command, *arguments], cwd=self._tree, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout

    def show(self, *arguments):
        """The exit status; what is said goes to stderr."""
        return subprocess.run([*self._command, *arguments], cwd=self._tree, stdout=sys.stderr,
                              check=False).returncode

    def answer(self, *arguments):
        done = subprocess.run([*self._command, *arguments], cwd=self._tree, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            sys.exit(f"bazel {arguments[0]} failed:\n{done.stderr}")
        return done.stdout.strip()

    def tests(self):
        return sorted(self.answer("query", TESTS).split())
