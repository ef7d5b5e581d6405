"""Writes event logs in the formats of other tools.

    Chrome's trace events     counters and steps, for Perfetto and chrome://tracing
    speedscope                a flame graph by scopes of who holds the peak
    PyTorch's memory snapshot for its memory viewer
    RMM's log                 for its replay benchmark
"""

import collections
import itertools
import json

from thimble_gpu import columns
from thimble_gpu import files
from thimble_gpu import pytorch_snapshot


def trace_events(log, path):
    """Writes counters of bytes in use, reserved and on the host; steps; and refusals with their
    reports."""
    process, steps, refusals = 1, 2, 3  # steps and refusals are threads, so that each gets a line

    def event(kind, name, **more):
        return {"ph": kind, "pid": process, "name": name, **more}

    def named(what, name, **more):
        return event("M", what, args={"name": name}, **more)

    def counter(time, name, value):
        return event("C", name, ts=time / 1000, args={"bytes": value})

    def events():
        yield named("process_name", "Thimble")
        yield named("thread_name", "steps", tid=steps)
        yield named("thread_name", "out of memory", tid=refusals)
        blocks, in_use = log.blocks(), 0
        for time, block, is_new in log.ops():
            in_use += blocks[block][1] if is_new else -blocks[block][1]
            yield counter(time, "in use", in_use)
        starts = []
        for time, kind, address, size in log.marks():
            if kind == "step":
                starts.append(time)
            elif kind == "memory":
                yield counter(time, "reserved", size)
            elif kind == "swap":
                yield counter(time, "on the host", address)
            elif kind == "oom":  # as a list, because viewers show no line breaks
                yield event("i", "out of memory", s="t", tid=refusals, ts=time / 1000,
                            args={"explanation": log.header["texts"][address].splitlines()})
        ends = starts[1:] + [log.figures["duration_ns"]]
        for number, (start, end) in enumerate(zip(starts, ends), start=1):
            yield event("X", f"step {number}", tid=steps, ts=start / 1000, dur=(end - start) / 1000)

    with files.replacing(path) as file:
        file.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        for number, each in enumerate(events()):
            file.write((",\n" if number else "") + json.dumps(each, separators=(",", ":")))
        file.write("\n]}\n")


def held_at_peak(log):
    """Returns the blocks that are held at the peak."""
    blocks, live, in_use, most, found = log.blocks(), set(), 0, 0, set()
    peak = log.figures["peak_in_use"]
    for _, block, is_new in log.ops():
        (live.add if is_new else live.discard)(block)
        in_use += blocks[block][1] if is_new else -blocks[block][1]
        if in_use > most:
            most = in_use
            if most == peak:
                found = set(live)
                break
    return [blocks[block] for block in sorted(found)]


def speedscope(log, path):
    labels, held = log.labels(), collections.Counter()
    for _, size, group in held_at_peak(log):
        held[columns.scopes(labels[group])] += size
    stacks = sorted(held)  # sorted, because the viewer merges only neighbours
    number_of = {part: number
                 for number, part in enumerate(dict.fromkeys(itertools.chain(*stacks)))}
    profile = {"type": "sampled", "name": "held at the peak", "unit": "bytes", "startValue": 0,
               "endValue": sum(held.values()),
               "samples": [[number_of[part] for part in stack] for stack in stacks],
               "weights": [held[stack] for stack in stacks]}
    with files.replacing(path) as file:
        json.dump({"$schema": "https://www.speedscope.app/file-format-schema.json",
                   "shared": {"frames": [{"name": part} for part in number_of]},
                   "profiles": [profile], "exporter": "thimble"}, file)


def rmm_log(log, path):
    """Writes what RMM's logging_resource_adaptor would, refused requests included."""
    blocks = log.blocks()
    actions = {"allocate": "allocate", "free": "free", "oom": "allocate failure"}
    with files.replacing(path) as file:
        file.write("Thread,Time,Action,Pointer,Size,Stream\n")
        for time, kind, address, size, _ in log.events():
            if kind not in actions:
                continue
            pointer = "(nil)"
            if kind != "oom":
                address, size, _ = blocks[address]
                pointer = f"{address:#x}"
            seconds, micros = divmod(time // 1000, 1_000_000)
            clock = f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
            file.write(f"1,{clock}.{micros:06},{actions[kind]},{pointer},{size},0\n")


# Each option of `thimble report`: its argument, its meaning, and the function that writes it.
FORMATS = {
    "perfetto": ("OUT.json", "write trace events for Perfetto or chrome://tracing", trace_events),
    "speedscope": ("OUT.json", "write who holds the peak, for speedscope", speedscope),
    "pytorch": ("OUT.pickle", "write a snapshot for PyTorch's memory viewer",
                pytorch_snapshot.write),
    "rmm": ("OUT.csv", "write a log for RMM's replay benchmark", rmm_log),
}
