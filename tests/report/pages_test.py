"""Pages in a browser: no errors, no requests, true figures, and reactions to pointer and keys.

The logs are recorded here: GPT-2 and eager decoding on the simulated GPU, a network that swaps on
the CPU device, and a plan of Harmony's.
"""

import json
import pathlib
import re
import struct
import tempfile
import unittest

from tests.harmony import profile_files
from tests.report import browser
from tests.wheel import installation

ON_GPU = {"TF_GPU_ALLOCATOR": "thimble", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
SWAPPING = ("import sys; sys.path.insert(0, 'tests/tf_plugin'); import swap_models; "
            "swap_models.train('cnn')")
PLANNED = SWAPPING.replace("swap_models.train", "swap_models.STEPS = 40; swap_models.train")
ON_CPU = "device:cpu,chunk:64KiB,retry_ms:100"

# At some instants: the highest and lowest value of an interval match a plain search, layers sum up
# to the total, and blocks lie in mapped memory, with every byte at home in one block.
CHECKS = """(() => {
  const {history, timeline} = thimble, wrong = [];
  const expect = (truth, what) => { if (!truth && wrong.length < 5) wrong.push(what); };
  for (let i = 0; i < 200; ++i) {
    const from = Math.floor(history.ops * i / 230), until = Math.min(from + i * 7, history.ops);
    const part = history.total.slice(from, until + 1);
    const most = part.reduce((a, b) => Math.max(a, b));
    const least = part.reduce((a, b) => Math.min(a, b));
    expect(history.total[history.extremes.highest(from, until)] === most, "highest");
    expect(history.total[history.extremes.lowest(from, until)] === least, "lowest");
  }
  for (const part of [0, .13, .34, .5, .77, 1, .21]) {
    const instant = Math.floor(history.ops * part);
    const layers = timeline.layers.at(instant).reduce((a, b) => a + b, 0);
    expect(layers === history.total[instant], "layers at " + instant);
    const blocks = history.liveBlocks(instant), map = new Mappings(history, instant);
    const sum = blocks.reduce((all, block) => all + history.bytes[block], 0);
    expect(sum === history.total[instant], "blocks at " + instant);
    const away = onHostAt(history, instant), pieces = [];
    for (const block of blocks) {
      const own = map.piecesOf(history.address[block], history.bytes[block]);
      expect(own.reduce((all, piece) => all + piece.bytes, 0) === history.bytes[block],
        "pieces of block " + block);
      if (!away.has(block)) pieces.push(...own);
    }
    pieces.sort((a, b) => a.from - b.from);
    pieces.forEach(({from, bytes}, i) => {
      expect(!i || pieces[i - 1].from + pieces[i - 1].bytes <= from, "overlap at " + from);
      for (let slot = Math.floor(from / map.chunk); slot * map.chunk < from + bytes; ++slot)
        expect(map.slots.has(slot), "slot " + slot + " at " + instant + " has no memory");
    });
  }
  return wrong;
})()"""


def size(count):
    """Formats a size as the page and the command do."""
    for unit, exponent in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << exponent:
            return f"{count / (1 << exponent):.2f} {unit}"
    return f"{count} bytes"


class Pages(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.site = installation.Environment(cls.addClassCleanup).install()
        cls.chromium = browser.Browser(cls.addClassCleanup)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def run_program(self, *command, status=0, **options):
        ended = self.site.run(*command, **options)
        self.assertEqual(ended.returncode, status, ended.stderr)

    def stats(self, log):
        ended = self.site.run("thimble", "stats", "--json", str(log))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return json.loads(ended.stdout)

    def open(self, page, **options):
        self.chromium.open(str(page), **options)
        self.assert_quiet(page)

    def assert_quiet(self, page):
        self.assertEqual(self.chromium.problems(), [])
        self.assertEqual(self.chromium.requests(), [f"file://{page}"])

    def text_of(self, selector):
        return self.chromium.evaluate(f"document.querySelector({selector!r}).innerText")

    # --- What every report must do ---------------------------------------------------------------

    def check(self, log):
        """Writes the page of a log and tries everything on it. The figures."""
        page = log.with_suffix(".html")
        self.run_program("thimble", "report", str(log), "-o", str(page))
        figures = self.stats(log)
        self.open(page)
        self.assertEqual(self.chromium.evaluate(CHECKS), [])
        self.check_figures(figures)
        self.check_hover_and_zoom()
        self.check_choice()
        self.check_themes()
        self.assert_quiet(page)
        return figures

    def check_figures(self, figures):
        told = self.chromium.evaluate("thimble.report.figures")
        self.assertEqual(told, {name: value for name, value in figures.items() if name != "log"})
        headline = self.text_of("#headline")
        self.assertIn(size(figures["peak_in_use"]), headline)
        self.assertIn(size(figures["peak_reserved"]), headline)
        self.assertIn(f"{figures['fragmentation']:.1f} %", headline)
        self.assertRegex(headline, r"BFC would need\n[\d.]+ (MiB|GiB)\n")
        # What the page computes from single events is what the summary says.
        drawn = self.chromium.evaluate(
            "(h => [h.total[h.peak], h.reserved.most(), h.blocks, h.limit.most(), h.onHost.most(), "
            "h.reserved.at(h.peak)])(thimble.history)")
        self.assertEqual(drawn, [figures[name] for name in (
            "peak_in_use", "peak_reserved", "allocations", "limit", "peak_swapped",
            "reserved_at_peak")])

    def check_hover_and_zoom(self):
        x, y, width, height = self.chromium.place("#timeline")
        middle = (x + width / 2, y + height / 2)
        self.chromium.point(*middle)
        exact = re.search(r"in use +\S+ \S+ \(([\d,]+)\)", self.text_of("#tip"))
        instant = self.chromium.evaluate(f"thimble.timeline.highestAt({middle[0] - x})")
        self.assertEqual(int(exact.group(1).replace(",", "")),
                         self.chromium.evaluate(f"thimble.history.total[{instant}]"))
        view = "[thimble.view.from, thimble.view.until]"
        whole = self.chromium.evaluate(view)
        self.chromium.wheel(*middle, -300)
        closer = self.chromium.evaluate(view)
        self.assertGreater(closer[0], whole[0])
        self.assertLess(closer[1], whole[1])
        self.chromium.point(*middle, "mousePressed", button="left", buttons=1, clickCount=1)
        self.chromium.point(middle[0] - 60, middle[1], button="left", buttons=1)
        self.chromium.point(middle[0] - 60, middle[1], "mouseReleased", button="left", clickCount=1)
        moved = self.chromium.evaluate(view)
        self.assertGreater(moved[0], closer[0])
        self.assertAlmostEqual(moved[1] - moved[0], closer[1] - closer[0], delta=1e-3 * moved[1])
        self.chromium.evaluate("thimble.timeline.canvas.focus()")
        self.chromium.key("-")
        self.assertLess(self.chromium.evaluate(view)[0], moved[0])
        self.chromium.key("Home")
        self.assertEqual(self.chromium.evaluate(view), whole)

    def check_choice(self):
        x, y, width, height = self.chromium.place("#timeline")
        self.chromium.click(x + width / 2, y + height / 2)
        chosen = self.chromium.evaluate("thimble.timeline.chosen")
        self.assertIn(f"event {chosen:,} of", self.text_of("#chosen"))
        self.chromium.key(".")
        self.assertEqual(self.chromium.evaluate("thimble.timeline.chosen"), chosen + 1)
        self.chromium.key("p")
        self.assertEqual(self.chromium.evaluate("thimble.timeline.chosen"),
                         self.chromium.evaluate("thimble.history.peak"))
        [most] = self.chromium.evaluate("thimble.history.holders(thimble.history.peak).slice(0, 1)")
        self.assertIn(size(most["bytes"]), self.text_of("#holders tr"))
        self.chromium.evaluate("document.querySelector('[data-field=blocks]').click()")
        blocks = self.chromium.evaluate(
            "[...document.querySelectorAll('#holders td:nth-child(4)')]"
            ".map(cell => Number(cell.textContent.replaceAll(',', '')))")
        self.assertEqual(blocks, sorted(blocks, reverse=True))
        x, y, width, height = self.chromium.place("#map")
        self.chromium.point(x + 100, y + 8)
        self.assertNotEqual(self.text_of("#tip"), "")

    def check_themes(self):
        theme = "document.documentElement.dataset.theme"
        self.assertEqual(self.chromium.evaluate(theme), "light")
        self.chromium.evaluate("document.querySelector('#theme').click()")
        self.assertEqual(self.chromium.evaluate(theme), "dark")
        for way in ("op", "lifetime", "scope"):
            self.chromium.evaluate(f"(s => {{ s.value = {way!r}; s.onchange({{target: s}}); }})"
                                   "(document.querySelector('#stack'))")

    # --- Logs ------------------------------------------------------------------------------------

    def test_gpt2_on_a_gpu(self):
        log = self.folder / "gpt2.log"
        self.run_program("python", "tests/workloads/gpt2.py", "--layers", "2", "--steps", "3",
                         simulator=("--memory", "8GiB"), THIMBLE_CONF=f"log:{log}", **ON_GPU)
        figures = self.check(log)
        self.assertGreaterEqual(self.chromium.evaluate("thimble.history.steps.length"), 3)
        self.assertGreater(figures["steps"], 3)
        self.assertIn("outlives a step", self.text_of("#peak-words"))
        self.assertRegex(self.text_of("#holders"), "(functional|adam|gradient_tape)")

    def test_eager_decoding_that_runs_out(self):
        log = self.folder / "decode.log"
        ended = self.site.run(
            "python", "tests/workloads/decode.py", "--steps", "30", "--batch", "8",
            simulator=("--memory", "2GiB"), THIMBLE_CONF=f"limit:274MiB,retry_ms:100,log:{log}",
            **ON_GPU)
        self.assertIn("OOM when allocating", ended.stderr)
        figures = self.check(log)
        self.assertGreater(figures["out_of_memory"], 0)
        self.assertIn("Memory ran out at", self.text_of("#banners"))
        self.assertIn("out of memory (fragmentation)", self.text_of("#oom pre"))
        self.assertIn("MiB ConcatV2", self.text_of("#oom pre"))
        self.assertEqual(self.chromium.evaluate("thimble.history.steps.length"), 0)

    def test_a_network_that_swaps(self):
        free, log = self.folder / "free.log", self.folder / "swap.log"
        self.run_program("python", "-c", SWAPPING, THIMBLE_CONF=f"{ON_CPU},log:{free}")
        limit = int(0.6 * self.stats(free)["peak_in_use"])
        self.run_program("python", "-c", SWAPPING,
                         THIMBLE_CONF=f"{ON_CPU},limit:{limit},swap:auto,log:{log}")
        figures = self.check(log)
        self.assertGreater(figures["swap_in_bytes"], 0)
        trips = self.chromium.evaluate("thimble.swaps.trips.map(trip => [trip.bytes, trip.back])")
        self.assertEqual(sum(size for size, _ in trips), figures["swap_out_bytes"])
        self.assertEqual(sum(size for size, back in trips if back is not None),
                         figures["swap_in_bytes"])
        x, y, width, _ = self.chromium.place("#trips")
        self.chromium.point(x + width / 2, y + 8)
        self.assertIn("left", self.text_of("#tip"))

    def test_a_run_with_a_plan(self):
        log = self.folder / "plan.log"
        self.run_program("python", "-c", PLANNED, THIMBLE_CONF=f"{ON_CPU},plan:auto,log:{log}")
        figures = self.check(log)
        self.assertGreater(figures["plan_hits"], 0)
        counts = self.chromium.evaluate("thimble.planned.counts()")
        new = counts["planned"] + counts["elsewhere"] + counts["outside"]
        self.assertGreater(counts["planned"], new / 2)
        self.assertIn(f"with {new} new blocks: {counts['planned']} where the plan has them",
                      self.text_of("#plan-words"))
        # The pointer on a block that is where the plan has it.
        x, y, *_ = self.chromium.place("#planned")
        place = self.chromium.evaluate(
            "thimble.planned.placeOf(thimble.planned.blocks.find(each => each.kind === 'planned')"
            ".block)")
        self.chromium.point(x + (place["left"] + place["right"]) / 2,
                            y + (place["top"] + place["bottom"]) / 2)
        self.assertIn("of the plan's memory\nwhere the plan has it", self.text_of("#tip"))

    def test_logs_that_are_cut_damaged_empty_or_old(self):
        allocation = struct.pack("<6Q", 1, 4096, 1000, 0, 7, 10)
        for name, version, records, complete, banner in (
            ("cut", 2, allocation, 0, "The log is incomplete: its process still runs, crashed or"),
            ("damaged", 2, allocation + struct.pack("<6Q", 99, *[0] * 5), 1,
             "record 1 has kind 99"),
            ("empty", 2, b"", 1, "has no allocations"),
            ("old", 1, allocation, 1, "")):
            with self.subTest(name):
                log, page = self.folder / (name + ".log"), self.folder / (name + ".html")
                log.write_bytes(b"THIMBLEL" + struct.pack("<IHH", version, 48, complete) + records)
                self.run_program("thimble", "report", str(log), "-o", str(page),
                                 status=3 if name == "damaged" else 0)
                self.open(page)
                self.assertIn(banner, self.text_of("#banners"))
                if name == "old":
                    self.assertIn("has version 1", self.text_of("#map-words"))

    def test_dark_pages_for_dark_systems(self):
        log, page = self.folder / "dark.log", self.folder / "dark.html"
        log.write_bytes(b"THIMBLEL" + struct.pack("<IHH", 2, 48, 1))
        self.run_program("thimble", "report", str(log), "-o", str(page))
        self.open(page, dark=True)
        self.assertEqual(self.chromium.evaluate("document.documentElement.dataset.theme"), "dark")

    def test_a_plan_of_harmony(self):
        profile, page = self.folder / "p.csv", self.folder / "gantt.html"
        profile.write_text(profile_files.profile())
        self.run_program("thimble", "harmony", str(profile), "--gpus", "2", "--memory", "1GiB",
                         "--batch", "8", "--seconds", "0.2", "--gantt", str(page))
        self.open(page)
        x, y, width, height = self.chromium.place("#chart")
        bar = self.chromium.evaluate("(g => { const row = g.rows[0], a = row.actions[0]; return "
                                     "[g.xOf((a[9] + a[10]) / 2), row.y + 10]; })(thimble.gantt)")
        self.chromium.point(x + bar[0], y + bar[1])
        self.assertRegex(self.text_of("#tip"), r"task \d+\nlayers \d+ to \d+\n")
        until = "thimble.gantt.view.until"
        whole = self.chromium.evaluate(until)
        self.chromium.wheel(x + width / 2, y + height / 2, -300)
        self.assertLess(self.chromium.evaluate(until), whole)
        self.chromium.evaluate("document.querySelector('#theme').click()")
        self.assertEqual(self.chromium.evaluate("document.documentElement.dataset.theme"), "dark")
        self.assert_quiet(page)


if __name__ == "__main__":
    unittest.main()
