"""The self-test of one GPU, in a process of its own: python -m thimble_gpu.selftest.child GPU.

Prints one JSON object per line: {"begin": NAME} before a check, {"check", "status", "text"} after
it, and {"gpu"}, {"calls_us"}, {"bus"} for the record. Statuses: ok; broken, the driver does
something else; lost, the device cannot do it; unproven, nothing was computed.
"""

import json
import sys

from thimble_gpu.selftest import cuda as cu
from thimble_gpu.selftest import memory
from thimble_gpu.selftest import prices
from thimble_gpu.selftest import rules
from thimble_gpu.selftest import work
from thimble_gpu.selftest.gpu import Broken
from thimble_gpu.selftest.gpu import Gpu
from thimble_gpu.selftest.gpu import Lost
from thimble_gpu.selftest.gpu import Unproven
from thimble_gpu.selftest.gpu import Workspace

_NEEDS_MEMORY = 512 << 20
_VIRTUAL = rules.CHECKS + memory.CHECKS + work.MAPPING
_PLAIN = work.CHECKS + memory.POOLS


def _say(**line):
    print(json.dumps(line), flush=True)


def _run(gpu, name, check):
    _say(begin=name)
    try:
        with Workspace(gpu) as space:
            answer = check(space)
        status = "ok"
    except (Broken, cu.CudaError) as error:
        status, answer = "broken", str(error)
    except Lost as error:
        status, answer = "lost", str(error)
    except Unproven as error:
        status, answer = "unproven", str(error)
    _say(check=name, status=status, text=answer)


def _measure(gpu, key, measure):
    _say(begin=f"prices: {key}")
    with Workspace(gpu) as space:
        _say(**{key: measure(space)})


def main(number, *mode):
    gpu = Gpu(cu.Cuda(), int(number))
    if mode == ("trespass",):
        with Workspace(gpu) as space:
            print(rules.trespass(space), flush=True)
        return
    _say(gpu=gpu.describe())
    if gpu.free_bytes() < _NEEDS_MEMORY:
        raise SystemExit(f"{gpu.free_bytes() >> 20} MiB are free, but the self-test takes "
                         f"{_NEEDS_MEMORY >> 20} MiB: end other programs on it first")
    if gpu.granularity:
        for name, check in _VIRTUAL:
            _run(gpu, name, check)
    else:
        _say(check="virtual memory management", status="lost",
             text=f"none: Thimble cannot serve this GPU, and {len(_VIRTUAL)} checks need it")
    for name, check in _PLAIN:
        _run(gpu, name, check)
    _measure(gpu, "calls_us", prices.of_calls)
    _measure(gpu, "bus", prices.of_bus)
    gpu.close()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (cu.CudaError, cu.NoDriver, Broken) as problem:
        sys.exit(str(problem))
