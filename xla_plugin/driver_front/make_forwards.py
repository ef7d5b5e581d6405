"""Writes the assembler source of the front's forwards: one jump per function of the driver.

    make_forwards.py DRIVER_NAMES SERVED_NAMES > forwards.S

A forward has no signature, so it fits every function: it jumps to the address in its entry of the
table, which real_driver.cc fills. Names that the front serves itself get no forward.
"""

import pathlib
import sys

HEADER = """\
// Written by make_forwards.py.
#if defined(__x86_64__)
#define FORWARD(name, index) \\
  .globl name; .type name, @function; name: jmp *forward_table + 8 * index(%rip); .size name, . - name
#elif defined(__aarch64__)
#define FORWARD(name, index) \\
  .globl name; .type name, %function; name: adrp x16, forward_table + 8 * index; \\
  ldr x16, [x16, :lo12:forward_table + 8 * index]; br x16; .size name, . - name
#else
#error "the front is written for x86-64 and AArch64"
#endif

  .text
"""

TABLES = """
  .hidden forward_table, forward_names, forward_count
  .globl forward_table, forward_names, forward_count

  .data
  .balign 8
forward_table:
  .fill {count}, 8, 0

  .section .data.rel.ro, "aw"
  .balign 8
forward_names:
{pointers}
forward_count:
  .quad {count}

  .section .rodata
{strings}

  .section .note.GNU-stack, "", %progbits
"""


def read_names(path):
    return pathlib.Path(path).read_text().split()


def main():
    served = set(read_names(sys.argv[2]))
    known = read_names(sys.argv[1])
    unknown = served.difference(known)
    if unknown:
        sys.exit(f"{sys.argv[2]}: not in {sys.argv[1]}: {', '.join(sorted(unknown))}")
    names = [name for name in known if name not in served]
    print(HEADER)
    for index, name in enumerate(names):
        print(f"FORWARD({name}, {index})")
    print(TABLES.format(
        count=len(names),
        pointers="\n".join(f"  .quad .Lname{index}" for index in range(len(names))),
        strings="\n".join(f'.Lname{index}: .asciz "{name}"' for index, name in enumerate(names)),
    ))


if __name__ == "__main__":
    main()
