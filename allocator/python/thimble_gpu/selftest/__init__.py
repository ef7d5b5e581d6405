"""What Thimble relies on of a GPU and its driver, tried out: `thimble selftest`.

    child.py     one GPU in a process of its own, because a wrong driver may end or block it
    rules.py     the rules of allocator/driver/driver.h, R1 to R8
    memory.py    stitched, swapped and host-backed memory, written and read by copies and kernels
    work.py      streams, events, and calls while a kernel runs
    prices.py    how long calls and copies take
    record.py    machine.json: the verdicts and prices of the last run
    gpu.py       one GPU, and memory on it that goes when a check ends
    kernels.py   PTX for the driver to compile
    cuda.py      libcuda.so.1
"""
