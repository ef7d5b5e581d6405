"""Writes an event log as a memory snapshot for PyTorch's viewer (memory_viz).

Home memory appears as PyTorch's expandable segments. Blocks appear where their bytes are: a
stitched block as its pieces at home, a block on the host not at all. Names of ops replace PyTorch's
call stacks.
"""

import bisect
import pickle

from thimble_gpu import columns
from thimble_gpu import files


class _Mappings:
    """Where memory is now: slots at home, and the runs of aliases."""

    def __init__(self):
        self.limit, self._slot = 0, 1
        self._slots = set()  # addresses
        self._starts, self._runs = [], {}  # starts of runs, sorted; run to (end, address at home)

    def add(self, kind, address, size, key):
        if kind == "limit":
            self.limit, self._slot = size, key
        elif kind == "map":
            self._slots.update(range(address, address + size, self._slot))
        elif kind == "unmap":
            self._slots.difference_update(range(address, address + size, self._slot))
        elif kind == "alias":
            bisect.insort(self._starts, address)
            self._runs[address] = address + size, key
        elif kind == "unalias":
            first = bisect.bisect_left(self._starts, address)
            last = bisect.bisect_left(self._starts, address + size)
            for start in self._starts[first:last]:
                del self._runs[start]
            del self._starts[first:last]

    def mapped(self):
        """Returns how many bytes are mapped."""
        return len(self._slots) * self._slot

    def segments(self):
        """Returns [address, end] of everything that is mapped, with neighbours joined."""
        found = []
        for slot in sorted(self._slots):
            if not found or found[-1][1] != slot:
                found.append([slot, slot])
            found[-1][1] += self._slot
        return found

    def pieces(self, address, size):
        """Returns [address at home, bytes] of every piece of a block."""
        found, end = [], address + size
        while address < end:
            index = bisect.bisect(self._starts, address) - 1
            start = self._starts[index] if index >= 0 else 0
            run_end, home = self._runs.get(start, (0, 0))
            if address >= run_end:
                return found + [[address, end - address]]  # it is at home
            part = min(end, run_end) - address
            home += address - start
            if found and sum(found[-1]) == home:
                found[-1][1] += part
            else:
                found.append([home, part])
            address += part
        return found


class _Snapshot:

    def __init__(self, log):
        self._blocks = log.blocks()
        self._texts = log.header["texts"]
        self._frames = [_frames(label) for label in log.labels()]
        self._mappings = _Mappings()
        self._held = {}   # number of a block to the records of its pieces
        self._about = {}  # number of a block to its metadata
        self._step = {"allocated in step": 1}
        self._trace = []
        for event in log.events():
            self._add(*event)

    def contents(self):
        return {"segments": self._segments(), "device_traces": [self._trace],
                "allocator_settings": {"allocator": "thimble", "limit": self._mappings.limit}}

    def _add(self, time, kind, address, size, key):
        if kind == "allocate":
            self._about[address] = self._step
            self._come(time, address)
        elif kind == "free":
            self._leave(time, address)
        elif kind == "evict" and address:
            self._leave(time, address - 1)
        elif kind == "fetch" and address:
            self._come(time, address - 1)
        elif kind == "step":
            self._step = {"allocated in step": self._step["allocated in step"] + 1}
        elif kind == "oom":
            self._tell("oom", time, addr=0, size=size, frames=self._frames[key],
                       device_free=max(self._mappings.limit - self._mappings.mapped(), 0),
                       user_metadata=self._texts[address])
        else:
            self._move(time, kind, address, size, key)

    def _move(self, time, kind, address, size, key):
        if kind == "unmap":  # the log has this before the eviction itself
            for block in [block for block, pieces in self._held.items()
                          if any(address <= piece["addr"] < address + size for piece in pieces)]:
                self._leave(time, block)
        self._mappings.add(kind, address, size, key)
        if kind in ("map", "unmap"):
            self._tell("segment_map" if kind == "map" else "segment_unmap", time,
                       addr=address, size=size, frames=[])

    def _tell(self, action, time, **more):
        self._trace.append({"action": action, "time_us": time // 1000, "stream": 0, **more})

    def _come(self, time, block):
        address, size, group = self._blocks[block]
        pieces = self._mappings.pieces(address, size)
        held = self._held[block] = []
        for number, (home, part) in enumerate(pieces, 1):
            about = self._about[block]
            if len(pieces) > 1:
                about = {**about, "stitched at": f"{address:#x}",
                         "piece": f"{number} of {len(pieces)}"}
            held.append({"addr": home, "size": part, "frames": self._frames[group],
                         "user_metadata": about})
            self._tell("alloc", time, **held[-1])

    def _leave(self, time, block):
        for piece in self._held.pop(block, ()):
            self._tell("free_requested", time, **piece)
            self._tell("free_completed", time, **piece)

    def _segments(self):
        """Returns the segments at the end of the log."""
        pieces = sorted((piece for held in self._held.values() for piece in held),
                        key=lambda piece: piece["addr"])
        starts = [piece["addr"] for piece in pieces]
        found = []
        for address, end in self._mappings.segments():
            inside = pieces[bisect.bisect_left(starts, address):bisect.bisect_left(starts, end)]
            used = sum(piece["size"] for piece in inside)
            found.append({
                "device": 0, "address": address, "total_size": end - address, "stream": 0,
                "segment_type": "large", "segment_pool_id": [0, 0], "is_expandable": True,
                "allocated_size": used, "active_size": used, "requested_size": used,
                "frames": [], "blocks": _filled(address, end, inside)})
        return found


def _frames(label):
    """Returns the scopes of a label as frames, the innermost first."""
    *scopes, name = columns.scopes(label)
    return [{"filename": "op", "line": 0, "name": name}] + [
        {"filename": "scope", "line": 0, "name": scope} for scope in reversed(scopes)]


def _filled(address, end, pieces):
    """Returns the blocks of a segment without gaps, because the viewer adds up their sizes."""

    def block(state, size, **more):
        return {"address": address, "size": size, "requested_size": size, "state": state, **more}

    found = []
    for piece in pieces:
        if piece["addr"] > address:
            found.append(block("inactive", piece["addr"] - address, frames=[]))
            address = piece["addr"]
        found.append(block("active_allocated", piece["size"], frames=piece["frames"],
                           user_metadata=piece["user_metadata"]))
        address += piece["size"]
    if address < end:
        found.append(block("inactive", end - address, frames=[]))
    return found


def write(log, path):
    with files.replacing(path, "wb") as file:
        pickle.dump(_Snapshot(log).contents(), file, protocol=4)
