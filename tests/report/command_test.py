"""`thimble report`, `thimble run --report`: a page for every log, a clear message for the rest."""

import json
import re
import struct
import textwrap
import unittest

from tests.report import recorded


def data_of(page):
    """What a page says about itself."""
    text = page.read_text()
    return json.loads(re.search(r'<script id="report" type="application/json">(.*?)</script>', text,
                                re.DOTALL).group(1))


class Report(recorded.Case):

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
        for page in (self.page.parent / "no" / "such.html", self.page.parent):
            ended = self.run_program("print('it ran')", page)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""))
            self.assertIn(str(page), ended.stderr)


if __name__ == "__main__":
    unittest.main()
