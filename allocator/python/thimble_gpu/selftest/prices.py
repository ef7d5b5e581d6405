"""How long the driver's calls and copies take on this machine."""

import ctypes
import statistics
import time

_CALLS = 64
_COPIES = 5
_LARGE = 64 << 20
_SMALL = 4096


def _us(samples):
    ordered = sorted(samples)
    return {"median": round(statistics.median(ordered) * 1e6, 3),
            "most": round(ordered[-1] * 1e6, 3)}


class _Watch:
    """Times calls by name."""

    def __init__(self):
        self.samples = {}

    def __call__(self, name, function, *arguments):
        begin = time.perf_counter()
        answer = function(*arguments)
        self.samples.setdefault(name, []).append(time.perf_counter() - begin)
        return answer

    def prices(self):
        return {name: _us(samples) for name, samples in self.samples.items()}


def of_calls(work):
    """Microseconds of each call for one chunk, by name. Python adds about a microsecond."""
    watch = _Watch()
    gpu, cuda = work.gpu, work.gpu.cuda
    for _ in range(_CALLS):
        if gpu.chunk:
            _one_chunk(work, watch, "", None)
            if gpu.attributes["host_numa_chunks"]:
                _one_chunk(work, watch, " on the host", gpu.numa_location())
        address = watch("cuMemAlloc", lambda: cuda.number("cuMemAlloc_v2", 2 << 20,
                                                          kind=ctypes.c_uint64))
        watch("cuMemFree", cuda.cuMemFree_v2, address)
    stream, event = work.stream(), work.event()
    gpu.kernels.fill(0, 0, 0, stream)  # compiles
    for _ in range(_CALLS):
        watch("cuLaunchKernel", gpu.kernels.fill, 0, 0, 0, stream)
        watch("cuEventRecord", cuda.cuEventRecord, event, stream)
        watch("cuEventQuery", cuda.attempt, "cuEventQuery", event)
        watch("cuStreamSynchronize", cuda.cuStreamSynchronize, stream)
    return watch.prices()


def _one_chunk(work, watch, where, location):
    size = work.gpu.chunk
    address = watch("cuMemAddressReserve" + where, work.reserve, size)
    chunk = watch("cuMemCreate" + where, work.create, size, location)
    watch("cuMemMap" + where, work.map, address, chunk)
    watch("cuMemSetAccess" + where, work.open, address)
    watch("cuMemUnmap" + where, work.unmap, address)
    watch("cuMemRelease" + where, work.destroy, chunk)
    watch("cuMemAddressFree" + where, work.release, address)


def of_bus(work):
    """Bytes per second and nanoseconds of latency: "in" is to the device, "out" to the host."""
    gpu, cuda = work.gpu, work.gpu.cuda
    device, pinned = work.memory(_LARGE), ctypes.addressof(work.pinned(_LARGE))
    pageable = ctypes.create_string_buffer(_LARGE)
    ctypes.memset(pageable, 1, _LARGE)  # pages of its own, not the page of zeros

    def copy_in(count, host, stream):
        cuda.cuMemcpyHtoDAsync_v2(device, host, count, stream)

    def copy_out(count, host, stream):
        cuda.cuMemcpyDtoHAsync_v2(host, device, count, stream)

    ends = {"in": copy_in, "out": copy_out}
    stream = work.stream()
    prices = {}
    for way, copy in ends.items():

        def seconds(count, host, copy=copy):
            return _least(cuda, stream, lambda: copy(count, host, stream))

        latency = seconds(_SMALL, pinned)
        large = seconds(_LARGE, pinned)
        prices[f"{way}_latency_ns"] = round(latency * 1e9)
        prices[f"{way}_bytes_per_second"] = round(_LARGE / max(large - latency, 1e-9))
        prices[f"pageable_{way}_bytes_per_second"] = round(
            _LARGE / seconds(_LARGE, ctypes.addressof(pageable)))
    prices["both_bytes_per_second"] = _both_ways(work, ends, pinned)
    if gpu.chunk and gpu.attributes["host_numa_chunks"]:
        prices.update(_of_host_chunk(work, device, stream))
    return prices


def _least(cuda, stream, start):
    """Seconds until what `start` starts is over: the least of a few, so nobody else is counted."""
    taken = []
    for _ in range(_COPIES):
        cuda.cuStreamSynchronize(stream)
        begin = time.perf_counter()
        start()
        cuda.cuStreamSynchronize(stream)
        taken.append(time.perf_counter() - begin)
    return min(taken)


def _both_ways(work, ends, host):
    """Bytes per second of both directions together, while both are busy."""
    cuda = work.gpu.cuda
    half = _LARGE // 2
    streams = [work.stream(), work.stream()]
    other = ctypes.addressof(work.pinned(half))

    def start():
        ends["in"](half, host, streams[0])
        ends["out"](half, other, streams[1])
        cuda.cuStreamSynchronize(streams[0])

    return round(2 * half / _least(cuda, streams[1], start))


def _of_host_chunk(work, device, stream):
    """Copies between device memory and a chunk on the host: what demotion and promotion cost."""
    cuda = work.gpu.cuda
    count = min(_LARGE // work.gpu.chunk, 8) * work.gpu.chunk
    chunk = work.create(count, work.gpu.numa_location())
    address = work.reserve(count)
    work.map(address, chunk, count)
    work.open(address, count)
    return {
        "demote_bytes_per_second": round(count / _least(
            cuda, stream, lambda: cuda.cuMemcpyAsync(address, device, count, stream))),
        "promote_bytes_per_second": round(count / _least(
            cuda, stream, lambda: cuda.cuMemcpyAsync(device, address, count, stream)))}
