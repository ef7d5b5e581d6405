"""`thimble report`, `thimble run --report`: a page for every log, a clear message for the rest."""

import json
import re
import struct
import textwrap
import unittest

from tests.report import recorded
from tests.wheel import small_disk


HEADER = 32  # bytes of a log


def data_of(page):
    """What a page says about itself."""
    text = page.read_text()
    return json.loads(re.search(r'<script id="report" type="application/json">(.*?)</script>', text,
                                re.DOTALL).group(1))


class Report(recorded.Case):

    def draw(self, status=0):
        ended = self.report(self.log, "-o", self.page)
        self.assertEqual((ended.returncode, ended.stdout), (status, f"{self.page}\n"), ended.stderr)
        told = data_of(self.page)
        note = told["figures"]["note"]
        self.assertEqual(ended.stderr, f"thimble report: {note}\n" if note else "")
        self.assertEqual(told["figures"], self.stats(status))
        shown = self.site.run("thimble", "stats", str(self.log))
        self.assertEqual(shown.returncode, status)
        self.assertEqual(note and shown.stdout.splitlines()[-1], note and "  " + note)
        return told

    def test_the_figures_are_those_of_stats(self):
        self.record()
        told = self.draw()
        self.assertEqual((told["figures"]["complete"], told["figures"]["note"]), (1, ""))
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

    def test_a_log_that_was_cut_is_shown_and_said_to_be(self):
        self.record()
        whole = self.log.read_bytes()
        self.log.write_bytes(whole[:HEADER + 48 * 20 + 7])  # in the middle of a record
        told = self.draw()
        self.assertEqual((told["figures"]["events"], told["figures"]["complete"]), (20, 0))
        records = (len(whole) - HEADER) // 48
        self.assertIn(f"incomplete: 20 of {records} events", told["figures"]["note"])
        self.log.write_bytes(whole[:HEADER])
        self.assertEqual(self.draw()["figures"]["allocations"], 0)

    def test_of_a_damaged_log_the_sound_part_is_told(self):
        self.record()
        whole = self.log.read_bytes()
        for offset in (0, 8, 16, 17, 40, 47):  # of a kind, an address, sizes, a key, a time
            damaged = bytearray(whole)
            damaged[HEADER + 48 * 30 + offset] ^= 0x80
            self.log.write_bytes(damaged)
            told = self.draw(status=3)["figures"]
            self.assertEqual((told["events"], told["complete"], told["damaged_at"]), (30, 0, 31))
            self.assertIn("damaged: record 30 has a wrong checksum; the 30 events before it are "
                          "intact", told["note"])
            self.assertLessEqual(told["peak_in_use"], told["peak_reserved"])

    def test_a_disk_that_fills_up_ends_the_log_and_not_the_program(self):
        program = recorded.PROGRAM + textwrap.dedent("""
            for _ in range(20000):
                core.check(core.free(arena, allocate("again", 1 << 20), zero))
            print("done")
        """)
        ended = small_disk.run(self.site, """
            THIMBLE_CONF=device:cpu,memory:32MiB,log:a.log python -c "$PROGRAM"
            echo status $?
            thimble stats --json a.log; thimble report a.log -o /dev/null 2>&1
        """, size="1m", PROGRAM=program)
        lines = ended.stdout.splitlines()
        self.assertEqual(lines[:2], ["done", "status 0"], ended.stderr)
        self.assertEqual(ended.stderr, "thimble: the event log 'a.log' could not be written: No "
                         "space left on device. It ends here; the program goes on without it.\n")
        told = json.loads(lines[2])
        self.assertGreater(told["events"], 10000)
        self.assertEqual((told["complete"], told["damaged_at"]), (0, 0))
        self.assertIn("could not be written after", told["note"])
        self.assertIn(f"thimble report: {told['note']}", lines)

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
                                ((newer, "-o", self.page), "version 9, but this program reads"),
                                ((self.folder / "none", "-o", self.page), "none"),
                                ((self.log, "-o", self.folder / "no" / "such.html"), "such.html"),
                                ((self.log, "--bfc-seconds", "-1"), "'-1'"),
                                ((), "LOG")):
            ended = self.report(*arguments)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn(part, ended.stderr)
            self.assertNotIn("Traceback", ended.stderr)
            self.assertFalse(self.page.exists())


class RunReport(recorded.Case):

    def setUp(self):
        super().setUp()
        self.page = self.folder / "run.html"

    def run_program(self, program, page):
        return self.site.run("thimble", "run", "--conf", recorded.CONF, "--report", str(page), "--",
                             "python", "-c", program)

    def test_a_run_leaves_a_page(self):
        ended = self.run_program(recorded.PROGRAM, self.page)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn(f"thimble: {self.page} shows where the memory of CPU went", ended.said)
        told = data_of(self.page)
        self.assertEqual(told["figures"]["peak_in_use"], 16 << 20)
        self.assertEqual(told["bfc"]["note"], "TensorFlow is not installed")

    def test_every_process_has_a_page_of_its_own(self):
        again = recorded.PROGRAM + textwrap.dedent("""
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
        for page, why in ((self.page.parent / "no" / "such.html", "No such file or directory"),
                          (self.page.parent, "Is a directory"),
                          ("/proc/such.html", "")):  # where nobody may write
            ended = self.run_program("print('it ran')", page)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""))
            self.assertIn(f"--report {page} cannot be written: {why}", ended.stderr)
        ended = small_disk.run(self.site, """
            mkdir folder; mount -t tmpfs -o ro none folder
            thimble run --report folder/page.html -- echo it ran
        """)
        self.assertEqual(ended.stdout, "")
        self.assertIn("--report folder/page.html cannot be written: Read-only file system",
                      ended.stderr)

    def test_a_page_that_does_not_fit_on_the_disk_is_told(self):
        ended = small_disk.run(self.site, f"""
            thimble run --conf {recorded.CONF} --report page.html -- python -c "$PROGRAM"
            echo status $?; ls
        """, PROGRAM=recorded.PROGRAM)
        self.assertEqual(ended.stdout, "status 0\n", ended.stderr)
        self.assertEqual(ended.said[-1],
                         "thimble: page.html was not written: No space left on device")


if __name__ == "__main__":
    unittest.main()
