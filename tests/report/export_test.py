"""`thimble report --speedscope`, `--pytorch` and `--rmm`; perfetto_test.py has `--perfetto`."""

import csv
import json
import pickle
import struct
import unittest

from tests.report import recorded


def joined(ranges):
    """Neighbours as one."""
    found = []
    for first, last in sorted(ranges):
        if found and found[-1][1] == first:
            first = found.pop()[0]
        found.append((first, last))
    return found


class Exports(recorded.Case):
    """All formats of other tools show the same history."""

    def write_log(self, *records, names=None):
        """Size of records and of key names, at most 40 bytes each."""
        for key, name in (names or {}).items():
            records += ((18, 0, 0, len(name), key, 0),
                        (20, *struct.unpack("<5Q", name.encode().ljust(40, b"\0"))))
        self.log.write_bytes(b"THIMBLEL" + struct.pack("<IHH", 2, 48, 1) +
                             b"".join(struct.pack("<6Q", *record) for record in records))

    def assert_peak(self, changes):
        """The highest sum of bytes that come and go is the peak."""
        in_use = peak = 0
        for change in changes:
            in_use += change
            peak = max(peak, in_use)
        self.assertEqual(peak, self.stats()["peak_in_use"])

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
        # The picture joins only neighbours: a/x, b, a/x, a/y.
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
        """Goes back like the viewer, from the segments at the end to nothing at the start.

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


if __name__ == "__main__":
    unittest.main()
