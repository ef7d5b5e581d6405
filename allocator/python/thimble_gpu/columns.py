"""Reads an event log as columns of numbers, which allocator/offline/logs/log_columns.h
describes."""

import itertools
import json
import os

from thimble_gpu import offline
from thimble_gpu import summary
from thimble_gpu import temporary


class Columns:
    """The columns of a log. Kinds of events have the names of allocator/base/events.def.

    Raises ThimbleError.
    """

    def __init__(self, log):
        with temporary.folder() as (folder, _):
            path = os.path.join(folder, "columns")
            figures = offline.run("columns", log=log, columns=path)
            with open(path, "rb") as file:
                self.header = json.loads(file.readline().decode(errors="replace"))
                self.data = file.read()
        self.figures = summary.with_shares(figures)

    def __getitem__(self, name):
        """Returns the numbers of a column."""
        start = 0
        for column in self.header["columns"]:
            if column["name"] == name:
                return _numbers(self.data[start:start + column["bytes"]])
            start += column["bytes"]
        raise KeyError(name)

    def labels(self):
        """Returns a label for every group."""
        return [_label(group) for group in self.header["groups"]]

    def blocks(self):
        """Returns (address, bytes, number of the group) of every block."""
        steps = (-(number + 1) // 2 if number % 2 else number // 2
                 for number in self["block.address"])
        return list(zip(itertools.accumulate(steps), self["block.bytes"], self["block.group"]))

    def ops(self):
        """Yields (time in ns, block, whether it is allocated) for every allocation and free."""
        allocated = 0
        for time, what in zip(itertools.accumulate(self["op.time"]), self["op.what"]):
            if what == 0:
                allocated += 1
            yield time, allocated - max(what, 1), what == 0

    def marks(self):
        """Yields (time in ns, kind, address, bytes) for all other events."""
        names = {number: name for name, number in self.header["kinds"].items()}
        return zip(itertools.accumulate(self["mark.time"]), map(names.get, self["mark.kind"]),
                   self["mark.address"], self["mark.bytes"])

    def events(self):
        """Yields (time in ns, kind, address, bytes, key) for all events, in the order of the log.

        Allocations and frees have the number of their block in place of an address.
        """
        ops, done = self.ops(), 0
        before = itertools.accumulate(self["mark.op"])
        for (time, kind, address, size), key, count in zip(self.marks(), self["mark.key"], before):
            yield from map(_op_event, itertools.islice(ops, count - done))
            done = count
            yield time, kind, address, size, key
        yield from map(_op_event, ops)


def scopes(label):
    """Returns the scopes of a label, the outermost first; at least one."""
    return tuple(filter(None, label.split("/"))) or (label,)


def _op_event(op):
    time, block, is_new = op
    return time, "allocate" if is_new else "free", block, 0, 0


def _numbers(data):
    found, number, shift = [], 0, 0
    for byte in data:
        number |= (byte & 127) << shift
        if byte < 128:
            found.append(number)
            number = shift = 0
        else:
            shift += 7
    return found


def _label(group):
    if group["kind"] == "name":
        return group["name"]
    value = int(group["value"])
    if group["kind"] == "key":
        return f"op {value:x}"
    if group["kind"] == "small":
        return "small blocks"
    return f"blocks of {value} bytes"
