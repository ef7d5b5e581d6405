"""Generates sources from the driver's interface: stubs and error names.

  generate.py stubs  NAMES... -- SOURCES... > stubs.cc        functions that nobody wrote by hand
  generate.py errors cuda.h                 > error_names.inc  the errors of cuda.h

A name is any word in quotes in the NAMES files, the symbol lists of the TensorFlow wheel. A stub
returns "not supported", which every caller must expect; success without an effect would mislead.
"""

import re
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def stubs(arguments):
    middle = arguments.index("--")
    names = set()
    for path in arguments[:middle]:
        names.update(re.findall(r'"((?:cu|nvml)[A-Z]\w*)"', read(path)))
    written = set()
    for path in arguments[middle + 1:]:
        written.update(re.findall(r"^\w[\w *]* \*?((?:cu|nvml)[A-Z]\w*)\(", read(path), re.MULTILINE))
    print('#include "tests/simgpu/driver/stub.h"\n')
    for name in sorted(names - written):
        print(f"SIMGPU_STUB({name})")


def errors(arguments):
    enumeration = re.search(r"typedef enum cudaError_enum \{(.*?)\} CUresult;", read(arguments[0]),
                            re.DOTALL).group(1)
    for name in re.findall(r"^\s*(CUDA_\w+)\s*=", enumeration, re.MULTILINE):
        print(f"SIMGPU_ERROR({name})")


def main():
    {"stubs": stubs, "errors": errors}[sys.argv[1]](sys.argv[2:])


if __name__ == "__main__":
    main()
