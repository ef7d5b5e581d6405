"""Queries the output of `thimble report --perfetto` in Perfetto, by SQL."""

import re
import struct
import textwrap
import unittest

from perfetto.common import exceptions

from tests.report import recorded
from tests.report import trace_processor

# Two more steps: in the first, a block waits on the host while another one has its place.
SWAPPING = recorded.PROGRAM + textwrap.dedent("""
    named, one, none = (ctypes.c_void_p * 1)(large.value), ctypes.c_size_t(1), ctypes.c_size_t(0)
    core.check(core.mark_step(arena))
    core.check(core.unpin(arena, None, none, named, one, zero, 0))
    core.check(core.free(arena, allocate("decoder/Sum", 8 << 20), zero))
    core.check(core.pin(arena, named, one, zero, zero, 0))
    core.check(core.mark_step(arena))
    core.check(core.free(arena, blocks[1], zero))
""")
ERRORS = "SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
COUNTERS = """
    SELECT process.name AS process, track.name AS track, counter.ts AS time, counter.value AS value
    FROM counter JOIN process_counter_track AS track ON counter.track_id = track.id
                 JOIN process USING (upid)
    ORDER BY counter.id"""
SLICES = """
    SELECT process.name AS process, thread.name AS thread, slice.name AS name, slice.ts AS time,
           slice.dur AS duration, slice.arg_set_id AS arguments
    FROM slice JOIN thread_track ON slice.track_id = thread_track.id
               JOIN thread USING (utid) JOIN process USING (upid)
    ORDER BY slice.ts"""
# EventKind of allocator/base/event.h.
ALLOCATE, FREE, STEP, MEMORY, SWAP, OOM, TEXT = 1, 2, 3, 4, 6, 19, 20


class Told:
    """What a log says, read from its bytes as allocator/observe/log_format.h has them."""

    def __init__(self, path):
        self.in_use, self.reserved, self.on_host = [], [], []  # (time in ns, bytes)
        self.steps = []  # when each began
        self.refusals = []  # time in ns, length of the text, text
        sizes = {}
        for kind, rest in struct.iter_unpack("<I4x40s", path.read_bytes()[32:]):
            if kind == TEXT:
                text += rest
                continue
            text = bytearray()
            address, size, stream, _, time = struct.unpack("<5Q", rest)
            self.end = time
            if kind == ALLOCATE:
                sizes[address] = size
            elif kind == FREE:
                del sizes[address]
            if kind in (ALLOCATE, FREE):
                self.in_use.append((time, sum(sizes.values())))
            elif kind == STEP:
                self.steps.append(time)
            elif kind == MEMORY:
                self.reserved.append((time, size))
            elif kind == SWAP:
                self.on_host.append((time, address))
            elif kind == OOM:
                self.refusals.append((time, stream, text))


class Perfetto(recorded.Case):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.chromium = trace_processor.start_browser(cls.addClassCleanup)

    def load(self, trace):
        """Asserts that nothing is wrong with a trace."""
        loaded = trace_processor.TraceProcessor(self.chromium, trace)
        self.assertEqual([row.name for row in loaded.query(ERRORS)], [])
        return loaded

    # --- What every trace must tell --------------------------------------------------------------

    def check(self):
        """Compares what Perfetto finds in the trace of a log with the log. What the log tells."""
        loaded, told = self.load(self.export("--perfetto", "t.json")), Told(self.log)
        self.check_counters(loaded, told)
        slices = list(loaded.query(SLICES))
        self.assertEqual({row.process for row in slices}, {"Thimble"})
        self.check_steps([row for row in slices if row.thread == "steps"], told)
        self.check_refusal([row for row in slices if row.thread == "out of memory"], loaded, told)
        [every] = loaded.query("SELECT COUNT(*) AS slices FROM slice")
        self.assertEqual(every.slices, len(told.steps) + 1)
        return told

    def check_counters(self, loaded, told):
        tracks = {}
        for row in loaded.query(COUNTERS):
            self.assertEqual(row.process, "Thimble")
            tracks.setdefault(row.track, []).append((row.time, row.value))
        expected = {"in use bytes": told.in_use, "reserved bytes": told.reserved}
        if told.on_host:
            expected["on the host bytes"] = told.on_host
        self.assertEqual(tracks, expected)
        figures = self.stats()
        for name, figure in (("in use bytes", "peak_in_use"), ("reserved bytes", "peak_reserved"),
                             ("on the host bytes", "peak_swapped")):
            values = tracks.get(name, [(0, 0)])
            self.assertEqual(max(value for _, value in values), figures[figure])
            times = [time for time, _ in values]
            self.assertEqual(times, sorted(times))

    def check_steps(self, rows, told):
        starts_and_ends = zip(told.steps, told.steps[1:] + [told.end])
        self.assertEqual([(row.name, row.time, row.time + row.duration) for row in rows],
                         [(f"step {number}", start, end)
                          for number, (start, end) in enumerate(starts_and_ends, start=1)])

    def check_refusal(self, rows, loaded, told):
        [row], [(time, length, text)] = rows, told.refusals
        self.assertEqual((row.name, row.time, row.duration), ("out of memory", time, 0))
        lines = text[:length].decode().splitlines()
        self.assertIn("  requested  32.00 MiB", lines)
        found = loaded.query("SELECT key, string_value AS line FROM args "
                             f"WHERE arg_set_id = {row.arguments} ORDER BY id")
        self.assertEqual([(row.key, row.line) for row in found],
                         [(f"args.explanation[{number}]", line)
                          for number, line in enumerate(lines)])

    # --- Logs ------------------------------------------------------------------------------------

    def test_a_stitched_block_and_a_refusal(self):
        self.record()
        told = self.check()
        self.assertEqual(self.stats()["stitches"], 1)
        self.assertEqual((len(told.steps), told.on_host), (1, []))

    def test_a_block_that_waits_on_the_host(self):
        self.record(SWAPPING, f"{recorded.CONF},swap:auto")
        told = self.check()
        self.assertEqual(len(told.steps), 3)
        self.assertEqual([value for _, value in told.on_host], [8 << 20, 0])

    def test_a_trace_that_is_wrong_is_seen(self):
        self.record()
        trace = self.export("--perfetto", "t.json")
        whole = trace.read_text()
        trace.write_text(whole[:len(whole) // 2])
        with self.assertRaisesRegex(exceptions.PerfettoException, "incomplete"):
            self.load(trace)
        for right, wrong in ((r'"ts":[\d.]+,', ""), (r'"bytes":\d+', '"bytes":"many"')):
            trace.write_text(re.sub(right, wrong, whole, count=1))
            with self.assertRaisesRegex(AssertionError, "json_(tokenizer|parser)_failure"):
                self.load(trace)


if __name__ == "__main__":
    unittest.main()
