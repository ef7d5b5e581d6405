"""How long a report of a million events takes: to be written, to open, and to be drawn.

    bazel run -c opt //tests/report:measure -- [EVENTS]

One JSON object. The log is of a made-up training loop: 2000 ops in nested scopes, blocks that stay,
outlive a step or do not, and holes that make the arena stitch.
"""

import contextlib
import json
import pathlib
import sys
import tempfile
import textwrap
import time

from tests.report import browser
from tests.wheel import installation

PROGRAM = textwrap.dedent("""
    import ctypes, os, random, sys
    from thimble_gpu import abi

    core = abi.installed_core()
    core._library.thimble_remember.restype = ctypes.c_uint64
    arena, block = ctypes.c_void_p(), ctypes.c_void_p()
    core.check(core.create(os.environ["THIMBLE_CONF"].encode(), ctypes.byref(arena)))
    draw = random.Random(1)
    ops = []
    for i in range(2000):
        name = f"model/block_{i % 12}/layer_{i % 7}/op_{i}".encode()
        size = draw.choice((5000, 70000, 300000, 2000000, 9000000)) + 256 * draw.randrange(99)
        ops.append((core.remember(arena, name, ctypes.c_size_t(len(name))), size))

    def allocate(key, bytes, step):
        status = core.allocate_in_step(
            arena, ctypes.c_size_t(bytes), ctypes.c_size_t(0), ctypes.c_uint64(0),
            ctypes.c_uint64(key), ctypes.c_uint64(step), 0, ctypes.byref(block))
        return ctypes.c_void_p(block.value) if status == abi.OK else None

    def free(block):
        core.check(core.free(arena, block, ctypes.c_uint64(0)))

    weights = [allocate(key, bytes, 1) for key, bytes in ops[:100]]
    events, step, kept = 0, 1, []
    while events < int(sys.argv[1]):
        step += 1
        live = []
        for key, bytes in ops:
            live.append(allocate(key, bytes, step))
            events += 2
            if len(live) > 300:
                free(live.pop(draw.randrange(len(live))))
        kept.append(live.pop())
        if len(kept) > 20:
            free(kept.pop(0))
        for block_ in live:
            free(block_)
    core.destroy(arena)
""")
# The slowest of several draws of the timeline: all of it, then zooming in.
DRAWS = """(() => {
  let slowest = 0;
  for (let i = 0; i < 12; ++i) {
    const start = performance.now();
    thimble.view.zoom(.4);
    slowest = Math.max(slowest, performance.now() - start);
  }
  thimble.view.all();
  return slowest;
})()"""
CHOICE = """(() => {
  const start = performance.now();
  thimble.choose(Math.floor(thimble.history.ops / 3));
  return performance.now() - start;
})()"""


def main():
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with contextlib.ExitStack() as at_end, tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        site = installation.Environment(at_end.callback).install()
        log, page = folder / "big.log", folder / "big.html"
        ended = site.run("python", "-c", PROGRAM, str(events),
                         THIMBLE_CONF=f"device:cpu,memory:2GiB,log:{log}")
        if ended.returncode != 0:
            sys.exit(ended.stderr)
        figures = json.loads(site.run("thimble", "stats", "--json", str(log)).stdout)
        line = {"events": figures["events"], "log_bytes": log.stat().st_size}
        for name, seconds in (("write_seconds", "0"), ("write_with_bfc_seconds", "10")):
            start = time.monotonic()
            ended = site.run("thimble", "report", str(log), "-o", str(page), "--bfc-seconds",
                             seconds)
            if ended.returncode != 0:
                sys.exit(ended.stderr)
            line[name] = round(time.monotonic() - start, 2)
        line["page_bytes"] = page.stat().st_size
        chromium = browser.Browser(at_end.callback)
        line["ready_seconds"] = round(chromium.open(str(page)), 2)
        line["slowest_draw_ms"] = round(chromium.evaluate(DRAWS), 1)
        line["choose_ms"] = round(chromium.evaluate(CHOICE), 1)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
