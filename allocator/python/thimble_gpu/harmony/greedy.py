"""A plain search for plans, until the planner of the core is there."""

from thimble_gpu.harmony.plans import Plan
from thimble_gpu.harmony.plans import Task


def search(rows, gpus, limit, batch, mode, same_portions):
    del same_portions
    mode = "pp" if mode == "auto" else mode
    share = batch if mode == "pp" else batch // gpus
    size = share
    while size >= 1:
        packs = _pack([row for row in _at(rows, size)], limit)
        if packs is not None:
            portions = (size,) * (share // size) + ((share % size,) if share % size else ())
            gpu = (lambda number: number % gpus) if mode == "pp" else (lambda number: -1)
            forward = [Task(a, b, gpu(i), portions) for i, (a, b) in enumerate(packs[:-1])]
            backward = [Task(a, b, gpu(len(forward) + i), portions)
                        for i, (a, b) in enumerate(reversed(packs))]
            return Plan(mode, gpus, batch, tuple(forward), tuple(backward))
        size //= 2
    return None


def _at(rows, size):
    by_layer = {}
    for row in rows:
        by_layer.setdefault(row.layer, []).append(row)
    for layer in sorted(by_layer):
        known = sorted(by_layer[layer], key=lambda row: row.ubatch)
        low, high = known[0], known[-1]
        part = (size - low.ubatch) / max(1, high.ubatch - low.ubatch)
        yield (low.bwd_mem_bytes + part * (high.bwd_mem_bytes - low.bwd_mem_bytes),
               4 * (low.x_elems + part * (high.x_elems - low.x_elems)))


def _pack(needs, limit):
    packs, end, total = [], len(needs) - 1, 0.0
    for number in range(len(needs) - 1, -1, -1):
        need, inputs = needs[number]
        if need + 2 * inputs > limit:
            return None
        if total + need + 2 * inputs > limit:
            packs.append((number + 1, end))
            end, total = number, 0.0
        total += need
    return [(0, end)] + packs[::-1]
