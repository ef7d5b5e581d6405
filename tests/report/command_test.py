"""`thimble report`, `thimble run --report`: a page for every log, a clear message for the rest."""

import csv
import json
import pathlib
import pickle
import re
import struct
import tempfile
import textwrap
import unittest

from tests.wheel import installation

# Takes memory as a framework's plugin does, without a framework: eight blocks, a block that is
# stitched from every second of them, and a request that is refused.
PROGRAM = textwrap.dedent("""
    import ctypes, os
    from thimble_gpu import abi

    core = abi.installed_core()
    core._library.thimble_remember.restype = ctypes.c_uint64
    arena, block = ctypes.c_void_p(), ctypes.c_void_p()
    core.check(core.create(os.environ["THIMBLE_CONF"].encode(), ctypes.byref(arena)))
    zero = ctypes.c_uint64(0)

    def allocate(name, bytes):
        key = core.remember(arena, name.encode(), ctypes.c_size_t(len(name)))
        core.check(core.allocate(arena, ctypes.c_size_t(bytes), zero, zero, ctypes.c_uint64(key),
                                 ctypes.byref(block)))
        return ctypes.c_void_p(block.value)

    blocks = [allocate(f"encoder/layer_{i}/MatMul", 2 << 20) for i in range(8)]
    core.check(core.mark_step(arena))
    for even in blocks[::2]:
        core.check(core.free(arena, even, zero))
    allocate("decoder/</script>Relu", 8 << 20)
    try:
        allocate("decoder/Softmax", 32 << 20)
    except abi.ThimbleError:
        pass
""")
CONF = "device:cpu,memory:16MiB"


def data_of(page):
    """What a page says about itself."""
    text = page.read_text()
    return json.loads(re.search(r'<script id="report" type="application/json">(.*?)</script>', text,
                                re.DOTALL).group(1))


def joined(ranges):
    """Neighbours as one."""
    found = []
    for first, last in sorted(ranges):
        if found and found[-1][1] == first:
            first = found.pop()[0]
        found.append((first, last))
    return found


class Recorded(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup, frameworks=False).install()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.log, self.page = self.folder / "a.log", self.folder / "a.html"

    def record(self):
        ended = self.site.run("python", "-c", PROGRAM, THIMBLE_CONF=f"{CONF},log:{self.log}")
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def report(self, *arguments):
        return self.site.run("thimble", "report", *map(str, arguments))

    def stats(self):
        line = json.loads(self.site.run("thimble", "stats", "--json", str(self.log)).stdout)
        self.assertEqual(line.pop("log"), str(self.log))
        return line


class Report(Recorded):

    def draw(self):
        ended = self.report(self.log, "-o", self.page)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(ended.stdout, f"{self.page}\n")
        return data_of(self.page)

    def test_the_figures_are_those_of_stats(self):
        self.record()
        told = self.draw()
        self.assertEqual(told["figures"], self.stats())
        self.assertEqual(told["figures"]["peak_in_use"], 16 << 20)
        self.assertEqual(told["figures"]["stitches"], 1)
        self.assertEqual(told["figures"]["out_of_memory"], 1)
        self.assertIn("requested  32.00 MiB\n", told["texts"][0])
        self.assertIn("8.00 MiB decoder/</script>Relu", told["texts"][0])
        names = [group.get("name") for group in told["groups"]]
        self.assertIn("encoder/layer_0/MatMul", names)
        self.assertIn("decoder/</script>Relu", names, "a name cannot end the data")

    def test_nothing_comes_from_elsewhere(self):
        self.record()
        self.draw()
        text = self.page.read_text()
        for outside in ("http://", "https://", "src=", "@import", "url("):
            self.assertNotIn(outside, text)
        self.assertLess(len(text), 200_000, "more than its sources and little data")

    def test_without_tensorflow_it_says_why_bfc_is_not_known(self):
        self.record()
        self.assertEqual(self.draw()["bfc"],
                         {"bytes": None, "note": "TensorFlow is not installed"})

    def test_what_can_be_read_of_a_log_is_shown(self):
        self.record()
        whole = self.log.read_bytes()
        self.log.write_bytes(whole[:16 + 48 * 20 + 7])  # in the middle of a record
        told = self.draw()
        self.assertEqual(told["figures"]["events"], 20)
        self.assertEqual(told["figures"], self.stats())
        damaged = bytearray(whole)
        damaged[16 + 48 * 30] = 99
        self.log.write_bytes(damaged)
        told = self.draw()
        self.assertEqual(told["damage"], "record 30 has kind 99")
        self.assertEqual((told["figures"]["events"], told["figures"]["complete"],
                          told["figures"]["damaged_at"]), (30, 0, 31))
        self.assertIn("damaged", self.site.run("thimble", "stats", str(self.log)).stdout)
        self.log.write_bytes(whole[:16])
        self.assertEqual(self.draw()["figures"]["allocations"], 0)

    def test_logs_of_the_version_before_are_shown(self):
        allocation = struct.pack("<6Q", 1, 4096, 1000, 0, 7, 10)
        self.log.write_bytes(b"THIMBLEL" + struct.pack("<IHH", 1, 48, 1) + allocation)
        told = self.draw()
        self.assertEqual((told["version"], told["figures"]["peak_in_use"]), (1, 1000))

    def test_names_what_is_wrong(self):
        foreign, newer = self.folder / "foreign", self.folder / "newer"
        foreign.write_text("no log")
        newer.write_bytes(b"THIMBLEL" + struct.pack("<IHH", 9, 48, 1))
        self.record()
        for arguments, part in (((foreign, "-o", self.page), "is not an event log"),
                                ((newer, "-o", self.page), "version 9, this program reads"),
                                ((self.folder / "none", "-o", self.page), "none"),
                                ((self.log, "-o", self.folder / "no" / "such.html"), "such.html"),
                                ((self.log, "--bfc-seconds", "-1"), "'-1'"),
                                ((), "LOG")):
            ended = self.report(*arguments)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn(part, ended.stderr)
            self.assertNotIn("Traceback", ended.stderr)
            self.assertFalse(self.page.exists())


class Exports(Recorded):
    """Other tools' formats: each tells the same story."""

    def write_log(self, *records, names=()):
        """Of records and, at most 40 bytes each, names of keys."""
        for key in names:
            name = names[key].encode()
            records += ((18, 0, 0, len(name), key, 0),
                        (20, *struct.unpack("<5Q", name.ljust(40, b"\0"))))
        self.log.write_bytes(b"THIMBLEL" + struct.pack("<IHH", 2, 48, 1) +
                             b"".join(struct.pack("<6Q", *record) for record in records))

    def export(self, option, name):
        out = self.folder / name
        ended = self.report(self.log, option, out)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(ended.stdout, f"{out}\n", "and no page")
        return out

    def assert_peak(self, changes):
        """The highest sum of bytes that come and go is the peak."""
        in_use = peak = 0
        for change in changes:
            in_use += change
            peak = max(peak, in_use)
        self.assertEqual(peak, self.stats()["peak_in_use"])

    def test_trace_events(self):
        self.record()
        events = json.loads(self.export("--perfetto", "t.json").read_text())["traceEvents"]
        counters = [(event["name"], event["args"]["bytes"]) for event in events
                    if event["ph"] == "C"]
        figures = self.stats()
        self.assertEqual(max(count for name, count in counters if name == "in use"),
                         figures["peak_in_use"])
        self.assertEqual(max(count for name, count in counters if name == "reserved"),
                         figures["peak_reserved"])
        instants = [event for event in events if event["ph"] == "i"]
        self.assertEqual([event["name"] for event in instants], ["step 1", "out of memory"])
        self.assertIn("requested  32.00 MiB\n", instants[1]["args"]["explanation"])

    def test_speedscope(self):
        self.record()
        file = json.loads(self.export("--speedscope", "s.json").read_text())
        [profile] = file["profiles"]
        self.assertEqual(sum(profile["weights"]), self.stats()["peak_in_use"])
        self.assertEqual(profile["endValue"], sum(profile["weights"]))
        self.assertEqual(len(profile["samples"]), len(profile["weights"]))
        names = [frame["name"] for frame in file["shared"]["frames"]]
        stacks = ["/".join(names[number] for number in stack) for stack in profile["samples"]]
        self.assertIn("encoder/layer_1/MatMul", stacks)

    def test_speedscope_joins_scopes(self):
        # Neighbours are joined in the picture, others are not: a/x, b, a/x, a/y.
        records = [(1, 4096 * (1 + i), 1000 + i, 0, key, i) for i, key in enumerate((1, 3, 1, 5))]
        self.write_log(*records, names={1: "/a//x", 3: "b", 5: "a/y"})
        file = json.loads(self.export("--speedscope", "s.json").read_text())
        names = [frame["name"] for frame in file["shared"]["frames"]]
        [profile] = file["profiles"]
        self.assertEqual([[names[number] for number in stack] for stack in profile["samples"]],
                         [["a", "x"], ["a", "y"], ["b"]])
        self.assertEqual(profile["weights"], [1000 + 1002, 1003, 1001])

    def snapshot(self):
        return pickle.loads(self.export("--pytorch", "p.pickle").read_bytes())

    def assert_replays_backwards(self, snapshot):
        """As the viewer does: from the segments at the end to nothing at the start.

        Meanwhile every block lies in one segment and in no other block.
        """
        segments, blocks = [], {}
        for segment in snapshot["segments"]:
            address = segment["address"]
            segments.append((address, address + segment["total_size"]))
            for block in segment["blocks"]:
                self.assertEqual(block["address"], address, "the viewer adds up sizes")
                if block["state"] == "active_allocated":
                    blocks[address] = address + block["size"]
                address += block["size"]
            self.assertEqual(address, segments[-1][1])
        for entry in reversed(snapshot["device_traces"][0]):
            address, end = entry["addr"], entry["addr"] + entry["size"]
            if entry["action"] == "alloc":
                self.assertEqual(blocks.pop(address), end)
            elif entry["action"] == "free_completed":
                blocks[address] = end
            elif entry["action"] == "segment_unmap":
                segments = joined(segments + [(address, end)])
            elif entry["action"] == "segment_map":
                [around] = [each for each in segments if each[0] <= address and end <= each[1]]
                segments.remove(around)
                segments += [each for each in ((around[0], address), (end, around[1]))
                             if each[0] < each[1]]
            for first, last in blocks.items():
                self.assertTrue(any(each[0] <= first and last <= each[1] for each in segments))
            limits = sorted(blocks.items())
            for block, after in zip(limits, limits[1:]):
                self.assertLessEqual(block[1], after[0])
        self.assertEqual((segments, blocks), ([], {}))

    def test_pytorch_snapshot(self):
        self.record()
        snapshot = self.snapshot()
        self.assert_replays_backwards(snapshot)
        [segment] = snapshot["segments"]
        self.assertEqual(segment["total_size"], self.stats()["peak_reserved"])
        self.assertEqual(segment["allocated_size"], 16 << 20)
        [trace] = snapshot["device_traces"]
        sign = {"alloc": 1, "free_completed": -1}
        self.assert_peak(sign.get(entry["action"], 0) * entry["size"] for entry in trace)
        first = next(entry for entry in trace if entry["action"] == "alloc")
        self.assertEqual([frame["name"] for frame in first["frames"]],
                         ["MatMul", "layer_0", "encoder"], "innermost first")
        self.assertEqual(first["user_metadata"], {"allocated in step": 1})

    def test_pytorch_snapshot_of_a_stitched_block_and_a_refusal(self):
        self.record()
        *trace, refused = self.snapshot()["device_traces"][0]
        pieces = [entry for entry in trace if "piece" in entry.get("user_metadata", ())]
        freed = [entry["addr"] for entry in trace if entry["action"] == "free_completed"]
        self.assertEqual([entry["addr"] for entry in pieces], freed, "where its bytes are")
        self.assertEqual([entry["user_metadata"]["piece"] for entry in pieces],
                         [f"{number} of 4" for number in (1, 2, 3, 4)])
        self.assertEqual({entry["user_metadata"]["allocated in step"] for entry in pieces}, {2})
        self.assertEqual((refused["action"], refused["size"], refused["device_free"]),
                         ("oom", 32 << 20, 0))
        self.assertIn("requested  32.00 MiB\n", refused["user_metadata"])

    def test_pytorch_snapshot_of_a_block_that_was_on_the_host(self):
        chunk, home = 4096, 1 << 40
        self.write_log((10, home, 8 * chunk, 0, chunk, 0),
                       (11, home, 2 * chunk, 0, chunk, 1), (1, home, 2 * chunk, 0, 7, 2),
                       (12, home, 2 * chunk, 0, 0, 3), (15, home, 2 * chunk, 9, 0, 4),
                       (11, home + chunk, chunk, 0, chunk, 5), (12, home + chunk, chunk, 0, 0, 6),
                       (11, home, 2 * chunk, 0, chunk, 7), (16, home, 2 * chunk, 9, 1, 8))
        snapshot = self.snapshot()
        self.assert_replays_backwards(snapshot)
        self.assertEqual([entry["action"] for entry in snapshot["device_traces"][0]],
                         ["segment_map", "alloc", "free_requested", "free_completed",
                          "segment_unmap", "segment_map", "segment_unmap", "segment_map", "alloc"])
        self.assertEqual(snapshot["segments"][0]["allocated_size"], 2 * chunk)

    def test_rmm_log(self):
        self.record()
        with open(self.export("--rmm", "r.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0]), ["Thread", "Time", "Action", "Pointer", "Size", "Stream"])
        sign = {"allocate": 1, "free": -1, "allocate failure": 0}
        self.assert_peak(int(row["Size"]) * sign[row["Action"]] for row in rows)
        freed = [row["Pointer"] for row in rows if row["Action"] == "free"]
        self.assertEqual(freed, [row["Pointer"] for row in rows[:8:2]])
        self.assertEqual((rows[-1]["Action"], rows[-1]["Pointer"], rows[-1]["Size"]),
                         ("allocate failure", "(nil)", str(32 << 20)))
        self.assertEqual({row["Stream"] for row in rows}, {"0"}, "others are not replayed")


class RunReport(Recorded):

    def setUp(self):
        super().setUp()
        self.page = self.folder / "run.html"

    def run_program(self, program, page):
        return self.site.run("thimble", "run", "--conf", CONF, "--report", str(page), "--",
                             "python", "-c", program)

    def test_a_run_leaves_a_page(self):
        ended = self.run_program(PROGRAM, self.page)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn(f"thimble: {self.page} shows where the memory of CPU went", ended.said)
        told = data_of(self.page)
        self.assertEqual(told["figures"]["peak_in_use"], 16 << 20)
        self.assertEqual(told["bfc"]["note"], "TensorFlow is not installed")

    def test_every_process_has_a_page_of_its_own(self):
        again = PROGRAM + textwrap.dedent("""
            import subprocess, sys
            if len(sys.argv) < 2:
                program = open("/proc/self/cmdline").read().split("\\0")[2]
                subprocess.run([sys.executable, "-c", program, "child"], check=True)
        """)
        ended = self.run_program(again, self.page)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(sorted(path.name for path in self.page.parent.iterdir()),
                         ["run-2.html", "run.html"])

    def test_a_page_that_cannot_be_written_is_refused_before_anything_runs(self):
        for page in (self.page.parent / "no" / "such.html", self.page.parent):
            ended = self.run_program("print('it ran')", page)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""))
            self.assertIn(str(page), ended.stderr)


if __name__ == "__main__":
    unittest.main()
