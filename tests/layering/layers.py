"""The layer law of the core, as data and as a check over the text of the sources.

    base < driver < vmm < stitch < {plan, swap} < observe < arena < thimble.h < plugins

An include may only point down. plan and swap do not know each other; plugins see thimble.h alone.
What is in offline/ sees what runs in a training process, which never sees it.
allocator/README.md says why.
"""

import re

# A folder of allocator/ and the folders it may include besides itself.
LAYERS = {
    "base": set(),
    "driver": {"base"},
    "vmm": {"base", "driver"},
    "stitch": {"base", "driver", "vmm"},
    "plan": {"base", "driver", "vmm", "stitch"},
    "swap": {"base", "driver", "vmm", "stitch"},
    "observe": {"base", "driver", "vmm", "stitch", "plan", "swap"},
    "arena": {"base", "driver", "vmm", "stitch", "plan", "swap", "observe"},
    "offline/harmony": {"base"},
    "offline/logs": {"base", "driver", "observe", "arena"},
    "offline/plan": {"base", "plan", "offline/logs"},
    "offline/schedule": {"base", "offline/logs"},
    "offline/tools": {"base", "driver", "plan", "arena", "offline/harmony", "offline/logs",
                      "offline/plan", "offline/schedule"},
}
C_INTERFACES = ("", "offline")  # thimble.h and thimble_offline.h, in allocator/ and below
PLUGINS = ("tf_plugin", "xla_plugin")

INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')
CUDA_HEADER = re.compile(r"(.*/)?((cuda|cuda_runtime|cuda_runtime_api|cudaTypedefs)\.h$|nvtx3/)")
# Words that only one place may use, and where that is.
RESERVED_WORDS = (
    (re.compile(r"\bstd::(recursive_|shared_|timed_)?mutex\b"), "allocator/base/",
     "locks have ranks: use thimble::Mutex (base/mutex.h)"),
    (re.compile(r"\b(std::)?(abort|_?exit|_Exit|quick_exit|terminate)\s*\("),
     "allocator/base/check.cc", "only a broken invariant ends the process: use THIMBLE_CHECK"),
)
COMMENT = re.compile(r"//.*|/\*.*?\*/")
STRING = re.compile(r'"(\\.|[^"\\])*"')


def violations(path, text):
    """Yields (line number, what is wrong) for one source file, named from the root of the tree."""
    parts = path.split("/")
    for number, line in enumerate(text.splitlines(), start=1):
        include = INCLUDE.match(line)
        if include:
            wrong = _wrong_include(parts, include.group(1))
            if wrong:
                yield number, wrong
        elif parts[0] == "allocator":
            code = STRING.sub('""', COMMENT.sub("", line))
            for word, home, remedy in RESERVED_WORDS:
                found = word.search(code)
                if found and not path.startswith(home):
                    yield number, f"'{found.group().strip()}': {remedy}"


def _wrong_include(parts, included):
    target = included.split("/")
    if CUDA_HEADER.match(included) and parts[:2] != ["allocator", "driver"]:
        return f"'{included}': only allocator/driver/ sees CUDA"
    if target[0] in PLUGINS and parts[0] != target[0]:
        return f"'{included}': nothing includes a plugin"
    if target[0] == "tests":
        return f"'{included}': nothing includes tests"
    if target[0] != "allocator":
        return None
    if parts[0] in PLUGINS:
        if included == "allocator/thimble.h":
            return None
        return f"'{included}': a plugin includes allocator/thimble.h alone"
    layer, below = ("/".join(path[1:-1]) for path in (parts, target))
    if layer in C_INTERFACES:
        return None
    if layer not in LAYERS:
        return f"'allocator/{layer}' is no layer: add it to tests/layering/layers.py"
    if below == layer or below in LAYERS[layer]:
        return None
    return f"'{included}': {layer}/ may include {', '.join(sorted(LAYERS[layer])) or 'nothing'}"
