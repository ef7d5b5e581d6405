"""Writes the C sources of the simulated libraries: all functions that the stock wheels may look up.

    stubs.py FOLDER TABLE...    reads LIBRARY.calls, writes FOLDER/LIBRARY_stubs.c

Names come from the wheels themselves: TensorFlow ships lists of what it looks up, and JAX's plugins
contain the names as strings. What a function does comes, first match first, from

  1. C++ beside this file: the definitions written here are weak, so the linker prefers those;
  2. the library's table (README.md has the grammar);
  3. its name: a Create makes a handle, a Destroy frees one, a query says "not supported" because
     a result that nobody wrote is worse than an error, and the rest (kernels, setters) succeeds.
"""

import fnmatch
import importlib.util
import pathlib
import re
import shlex
import sys
import typing


class Library(typing.NamedTuple):
    prefixes: tuple  # of its functions
    not_supported: int  # its status for "not supported"
    failed: int  # and for "execution failed"
    handles_are_pointers: bool = True


LIBRARIES = {
    "cublas": Library(("cublas",), 15, 13),
    "cublasLt": Library(("cublasLt",), 15, 13),
    "cudart": Library(("cuda", "__cuda"), 801, 700),
    "cudnn": Library(("cudnn",), 3000, 5000),
    "cufft": Library(("cufft",), 16, 6, handles_are_pointers=False),
    "cupti": Library(("cupti",), 27, 999),
    "curand": Library(("curand",), 999, 201),
    "cusolver": Library(("cusolver",), 9, 6),
    "cusparse": Library(("cusparse",), 10, 6),
    "nccl": Library(("nccl", "pnccl"), 3, 1),
}

# Actions that together are one piece of work on the stream of the handle, argument 0.
WORK = ("device@", "product@", "tensors@")
QUERY = re.compile(r"Get|Query|Count|Size|Is[A-Z]|Find")
HEADER = """\
/* Written by stubs.py. */
#include <stdint.h>
#include <stdlib.h>

typedef uintptr_t Word; /* an integer or pointer argument: the ABI passes both alike */
#define STUB __attribute__((weak, visibility("default")))

extern void simgpu_note_call(const char* name);
extern int simgpu_run(const char* name, void* stream, double flops, int math, double bytes,
                      unsigned count, ...);
extern int simgpu_math_of_letter(const void* handle, int letter);
extern int simgpu_math_of_type(const void* handle, int type, int compute);
extern double simgpu_tensor_bytes(const void* tensor);
enum { FP64, FP32, TF32, HALF, BYTE };

static inline void* stream_of(Word handle) { return handle ? *(void**)handle : 0; }
static inline double bytes_of(int math) {
  return math == FP64 ? 8 : math == HALF ? 2 : math == BYTE ? 1 : 4;
}
"""


def wheel(package):
    """The folder of an installed package, found without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        sys.exit(f"stubs.py: {package} is not installed here: './dev test' installs it")
    return pathlib.Path(list(spec.submodule_search_locations)[0])


def names_in_tensorflow():
    lists = (wheel("tensorflow") / "include/xla/tsl/cuda").glob("*.inc")
    return {name for path in lists for name in re.findall(r'"(\w+)"', path.read_text())}


def names_in_jax():
    """NUL-terminated strings that look like functions: prefix, capital letter, word characters."""
    prefixes = "|".join(prefix for library in LIBRARIES.values() for prefix in library.prefixes)
    pattern = re.compile(rb"\0((?:%s)[A-Z]\w{3,})(?=\0)" % prefixes.encode())
    plugins = [wheel("jax_plugins.xla_cuda12") / "xla_cuda_plugin.so"]
    plugins += sorted(wheel("jax_cuda12_plugin").glob("*.so"))
    return {name.decode() for path in plugins for name in pattern.findall(path.read_bytes())}


def owner(name):
    """The library that a function belongs to, by its longest prefix; None for the driver's own."""
    matches = [(len(prefix), key) for key, library in LIBRARIES.items()
               for prefix in library.prefixes if name.startswith(prefix)]
    return max(matches)[1] if matches else None


def read_calls(text):
    """The table as a list of (pattern, list of actions)."""
    rows = [shlex.split(line, comments=True) for line in text.splitlines()]
    return [(row[0], row[1:]) for row in rows if row]


def by_name(name, library):
    """What a function does that no table knows."""
    if "Destroy" in name:
        return ["free@0"]
    if QUERY.search(name):
        return [f"return={library.not_supported}"]
    if name.endswith("SetStream") and library.handles_are_pointers:
        return ["stream@1"]
    return ["handle@0"] if "Create" in name else []


def arity(actions):
    positions = [int(p) for a in actions for p in re.findall(r"(?<=[@,])\d+", a.split("=")[0])]
    positions += [int(p) for a in actions for p in re.findall(r"\ba(\d+)\b", a.partition("=")[2])]
    if any(a.startswith(WORK + ("stream@",)) for a in actions):
        positions.append(0)  # the handle, with its stream
    return max(positions, default=-1) + 1


def product(name, key, value):
    """The operations, kind of arithmetic and bytes of a product of matrices: M, N, K and perhaps
    a count of products are the numbers of arguments. `letter` is that in cublasSgemm."""
    sizes = [f"(double)(int)a{p}" for p in key.removeprefix("product@").split(",")]
    m, n, k, count = sizes + ["1.0"] * (4 - len(sizes))
    math = re.sub(r"\bletter\b", f"'{name.removeprefix('cublas')[0]}'", value)
    return (f"2 * {m} * {n} * {k} * {count}", math,
            f"bytes_of(math) * {count} * ({m} * {k} + {k} * {n} + 2 * {m} * {n})")


def run(name, actions, library):
    """The work that a function does on its stream, in C; None if no action says so."""
    flops, math, sizes, pointers = "0", "FP32", [], []
    for action in actions:
        key, _, value = action.partition("=")
        if key.startswith("product@"):
            flops, math, size = product(name, key, value)
            sizes.append(size)
        elif key.startswith("tensors@"):
            positions = key.removeprefix("tensors@").split(",")
            sizes += [f"simgpu_tensor_bytes((void*)a{p})" for p in positions]
        elif key.startswith("device@"):
            pointers = [f"(void*)a{p}" for p in key.removeprefix("device@").split(",")]
    if not pointers:
        return None
    stream = "stream_of(a0)" if library.handles_are_pointers else "0"
    arguments = [f'"{name}"', stream, flops, "math", " + ".join(sizes) or "0", str(len(pointers))]
    return (f"const int math = {math}; "
            f"if (simgpu_run({', '.join(arguments + pointers)})) return {library.failed};")


def statement(name, action):
    """One action in C: what to do, and what to return if the action says so."""
    key, _, value = action.partition("=")
    if key.startswith(WORK):
        return "", None
    if key == "return":
        return "", value
    if key == "says":
        return "", f'"{value}"'
    if key == "free@0":
        return "free((void*)a0);", None
    kind, _, position = key.partition("@")
    write = {
        "int": f"*(int*)a{position} = {value};",
        "size": f"*(size_t*)a{position} = {value};",
        "text": f'*(const char**)a{position} = "{value}";',
        "handle": f"*(void**)a{position} = calloc(1, 64);",
        "stream": f"*(Word*)a0 = a{position};",
    }
    if kind not in write or not position.isdigit():
        sys.exit(f"stubs.py: {name}: no such action: {action!r} (README.md lists them)")
    return f"if (a{0 if kind == 'stream' else position}) {write[kind]}", None


def function(name, actions, library):
    body, result = [f'simgpu_note_call("{name}");'], "0"
    for action in actions:
        text, returned = statement(name, action)
        body.append(text)
        result = returned or result
    body.append(run(name, actions, library))
    kind = "const char*" if result.startswith('"') else "Word"
    parameters = ", ".join(f"Word a{i}" for i in range(arity(actions))) or "void"
    return f"STUB {kind} {name}({parameters}) {{ {' '.join(filter(None, body))} return {result}; }}"


def source(names, calls, library):
    functions = []
    for name in sorted(names):
        known = [actions for pattern, actions in calls if fnmatch.fnmatchcase(name, pattern)]
        functions.append(function(name, known[0] if known else by_name(name, library), library))
    return HEADER + "\n" + "\n".join(functions) + "\n"


def main(folder, *tables):
    looked_up = names_in_tensorflow() | names_in_jax()
    for path in map(pathlib.Path, tables):
        calls = read_calls(path.read_text())
        names = {name for name in looked_up if owner(name) == path.stem}
        # A name without a wildcard is defined even if no wheel of today looks it up.
        names |= {pattern for pattern, _ in calls if re.fullmatch(r"\w+", pattern)}
        output = pathlib.Path(folder) / f"{path.stem}_stubs.c"
        output.write_text(source(names, calls, LIBRARIES[path.stem]))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
