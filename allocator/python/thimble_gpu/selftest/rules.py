"""The rules of virtual memory that Thimble relies on: R1 to R8 of allocator/driver/driver.h.

Each check gets a Workspace, returns what it saw, and raises Broken or Lost. On purpose, none does
what CUDA leaves undefined: a check must not harm the machine that it checks.
"""

import ctypes
import os
import subprocess
import sys

from thimble_gpu import text
from thimble_gpu.selftest import cuda as cu
from thimble_gpu.selftest.gpu import Broken
from thimble_gpu.selftest.gpu import Lost
from thimble_gpu.selftest.gpu import random_bytes

_SECONDS = 60  # for the child of memory_without_access_is_out_of_reach()


def _expect(condition, otherwise):
    if not condition:
        raise Broken(otherwise)


def a_chunk_is_mapped_whole(work):
    gpu = work.gpu
    _expect(gpu.granularity & (gpu.granularity - 1) == 0,
            f"the granularity, {gpu.granularity}, is not a power of two")
    for granules in (1, 3, 8):
        count = granules * gpu.granularity
        address = work.reserve(count)
        work.map(address, work.create(count), count)
        work.open(address, count)
        data = random_bytes(count, granules)
        gpu.write(address, data)
        _expect(gpu.read(address, count) == data, f"a chunk of {count} bytes lost some of them")
    return f"chunks of 1, 3 and 8 granules of {gpu.granularity} bytes"


def one_chunk_at_two_addresses_is_the_same_memory(work):
    gpu = work.gpu
    chunk = work.create()
    home, alias = work.side_by_side([chunk]), work.side_by_side([chunk])
    for seed, (written, read) in enumerate(((home, alias), (alias, home))):
        data = random_bytes(gpu.chunk, seed)
        gpu.write(written, data)
        _expect(gpu.read(read, gpu.chunk) == data,
                "what is written at one address does not appear at the other")
    work.unmap(home)
    _expect(gpu.read(alias, gpu.chunk) == data, "the second mapping dies with the first")
    return "in both directions, and the second outlives the first"


def mapping_onto_a_mapping_is_refused(work):
    address = work.side_by_side([work.create()])
    other = work.create()
    with work.gpu.cuda.provoking():
        error = work.gpu.cuda.attempt("cuMemMap", address, work.gpu.chunk, 0, other, 0)
    _expect(error, "cuMemMap put a chunk where another one is mapped")
    return f"cuMemMap: {error}"


def unmapping_a_part_is_refused(work):
    gpu = work.gpu
    count = 2 * gpu.chunk
    address = work.reserve(count)
    work.map(address, work.create(count), count)
    work.open(address, count)
    data = random_bytes(count, 1)
    gpu.write(address, data)
    with gpu.cuda.provoking():
        error = gpu.cuda.attempt("cuMemUnmap", address, gpu.chunk)
    _expect(error, "cuMemUnmap took a part of a mapping")
    _expect(gpu.read(address, count) == data, "the refused call changed bytes")
    return f"cuMemUnmap: {error}; the bytes stay"


def a_mapping_has_no_access_at_first(work):
    address = work.reserve(work.gpu.chunk)
    chunk = work.create()
    for time in ("first", "second"):
        work.map(address, chunk)
        _expect(not work.is_open(address), f"the {time} mapping has access before cuMemSetAccess")
        work.open(address)
        _expect(work.is_open(address), "cuMemSetAccess gave no access")
        work.unmap(address)
    return "nor after it was mapped again"


def access_is_given_per_range(work):
    size = work.gpu.chunk
    address = work.reserve(4 * size)
    for place in range(3):
        work.map(address + place * size, work.create())
    work.open(address, 2 * size)
    opened = [work.is_open(address + place * size) for place in range(3)]
    _expect(opened == [True, True, False],
            f"one call for two of three mappings gave access to {opened}")
    with work.gpu.cuda.provoking():
        error = work.try_open(address + 2 * size, 2 * size)
    _expect(error, "cuMemSetAccess accepted a range with a hole")
    return f"one call opens two mappings and not the third; with a hole: {error}"


def memory_without_access_is_out_of_reach(work):
    """In a process of its own, because the error may be the end of a context."""
    ended = subprocess.run(
        [sys.executable, "-m", "thimble_gpu.selftest.child", str(work.gpu.number), "trespass"],
        check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_SECONDS)
    answer = ended.stdout.strip()
    if not answer and ended.returncode > 0:  # such as a GPU for one process at a time
        raise Lost(f"not tried, because a second process cannot: {ended.stderr.strip()}")
    _expect(answer, f"the attempt ended the process: {text.how_ended(ended.returncode)}")
    _expect(answer != "reached", "memory without access was written")
    return f"a write to it: {answer}"


def trespass(work):
    """What the process of memory_without_access_is_out_of_reach() does: returns what it says."""
    address = work.reserve(work.gpu.chunk)
    work.map(address, work.create())
    with work.gpu.cuda.provoking():
        return (work.gpu.cuda.attempt("cuMemsetD8_v2", address, 1, work.gpu.chunk) or
                work.gpu.cuda.attempt("cuCtxSynchronize") or "reached")


def addresses_stay_reserved(work):
    gpu = work.gpu
    size = 8 * gpu.chunk
    address = work.reserve(size)
    work.map(address + gpu.chunk, work.create())
    work.unmap(address + gpu.chunk)
    others = [work.reserve(gpu.chunk) for _ in range(16)] + [work.memory(gpu.chunk)
                                                             for _ in range(16)]
    inside = [other for other in others if address - gpu.chunk < other < address + size]
    _expect(not inside, "addresses in a reserved range were given away after an unmap")
    work.map(address + gpu.chunk, work.create())
    work.open(address + gpu.chunk)
    data = random_bytes(gpu.chunk, 3)
    gpu.write(address + gpu.chunk, data)
    _expect(gpu.read(address + gpu.chunk, gpu.chunk) == data,
            "another chunk cannot take the place of one that was unmapped")
    return "and can be mapped again"


def there_are_addresses_for_all_memory(work):
    total = work.gpu.cuda.number("cuDeviceTotalMem_v2", work.gpu.number, kind=ctypes.c_size_t)
    size = -(-4 * total // work.gpu.granularity) * work.gpu.granularity
    work.reserve(size)
    return f"{size >> 30} GiB, four times the device's memory"


def a_destroyed_chunk_lives_until_its_last_unmap(work):
    gpu = work.gpu
    chunk = work.create()
    home, alias = work.side_by_side([chunk]), work.side_by_side([chunk])
    data = random_bytes(gpu.chunk, 4)
    gpu.write(home, data)
    work.destroy(chunk)
    work.unmap(home)
    newer = work.side_by_side([work.create()])
    gpu.write(newer, bytes(gpu.chunk))
    _expect(gpu.read(alias, gpu.chunk) == data, "its bytes were gone while it was still mapped")
    return "another chunk does not get its memory"


def memory_is_given_back(work):
    """Other programs may use the GPU at the same time, so there are a few attempts."""
    gpu = work.gpu
    count = 16 * gpu.chunk
    slack = count // 8  # page tables cost memory, too
    for _ in range(5):
        before = gpu.free_bytes()
        chunk = work.create(count)
        during = gpu.free_bytes()
        work.destroy(chunk)
        after = gpu.free_bytes()
        if abs(before - during - count) <= slack and abs(before - after) <= slack:
            return f"cuMemGetInfo follows a chunk of {count >> 20} MiB"
    raise Broken(f"cuMemGetInfo said {before} bytes, {during} with a chunk of {count} bytes, and "
                 f"{after} after it")


def an_import_counts_as_a_reference(work):
    gpu = work.gpu
    if not gpu.attributes["descriptors"]:
        raise Lost("no file descriptors for memory: processes cannot share chunks")
    chunk = work.create(descriptors=True)
    file = gpu.cuda.number("cuMemExportToShareableHandle", chunk, cu.DESCRIPTOR, 0)
    try:
        imported = work.adopt(gpu.cuda.number("cuMemImportFromShareableHandle", file,
                                              cu.DESCRIPTOR, kind=ctypes.c_uint64))
    finally:
        os.close(file)
    home = work.side_by_side([chunk])
    data = random_bytes(gpu.chunk, 5)
    gpu.write(home, data)
    work.unmap(home)
    work.destroy(chunk)
    _expect(gpu.read(work.side_by_side([imported]), gpu.chunk) == data,
            "an imported chunk died with the one that was exported")
    return "its bytes outlive the chunk that was exported"


CHECKS = (
    ("R1 R5 a chunk of whole granules is mapped whole", a_chunk_is_mapped_whole),
    ("R2 one chunk at two addresses is the same memory",
     one_chunk_at_two_addresses_is_the_same_memory),
    ("R2 mapping onto a mapping is refused", mapping_onto_a_mapping_is_refused),
    ("R3 unmapping a part is refused", unmapping_a_part_is_refused),
    ("R4 a mapping has no access at first", a_mapping_has_no_access_at_first),
    ("R4 access is given per range", access_is_given_per_range),
    ("R4 memory without access is out of reach", memory_without_access_is_out_of_reach),
    ("R6 addresses stay reserved", addresses_stay_reserved),
    ("R6 there are addresses for all memory", there_are_addresses_for_all_memory),
    ("R7 a destroyed chunk lives until its last unmap",
     a_destroyed_chunk_lives_until_its_last_unmap),
    ("R7 memory is given back", memory_is_given_back),
    ("R8 an import counts as a reference", an_import_counts_as_a_reference),
)
