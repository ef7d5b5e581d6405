"""A schedule of `thimble harmony` as one HTML file: what every GPU and link does, and when.

Nothing in it comes from elsewhere. Wheel or drag to zoom and move, point at a step to read it.
"""

import json
import sys

_PAGE = """<!doctype html>
<meta charset="utf-8">
<title>%(title)s</title>
<style>
:root { color-scheme: light dark; --back: #fff; --ink: #222; --line: #ddd; --tip: #fffd; }
@media (prefers-color-scheme: dark) {
  :root { --back: #16181c; --ink: #ddd; --line: #333; --tip: #22262ddd; }
}
body { margin: 1.5em; background: var(--back); color: var(--ink); font: 14px system-ui, sans-serif; }
h1 { font-size: 1.3em; margin: 0 0 .3em; }
p { margin: .3em 0; }
canvas { width: 100%%; display: block; cursor: grab; touch-action: none; }
#legend span { display: inline-block; margin: .2em 1em .2em 0; }
#legend i { display: inline-block; width: 1em; height: 1em; vertical-align: -2px; margin-right: .4em; }
#tip { position: fixed; display: none; pointer-events: none; background: var(--tip);
  border: 1px solid var(--line); padding: .4em .6em; border-radius: 4px; white-space: pre; }
</style>
<h1>%(title)s</h1>
<p>%(summary)s</p>
<p id="legend"></p>
<canvas id="chart"></canvas>
<p>Wheel: zoom. Drag: move. Double click: all of it.</p>
<div id="tip"></div>
<script id="data" type="application/json">%(data)s</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const colors = {"forward": "#4c9f70", "recompute": "#c9a227", "backward": "#3b76c4",
  "weights in": "#8e5bb5", "gather": "#b58fd0", "gradient out": "#c0504d", "reduce": "#d98880",
  "update": "#7f8c8d", "stash in": "#2a9d9d", "stash out": "#2a9d9d", "activations in": "#e07b39",
  "activations out": "#e07b39", "receive": "#5d8aa8", "send": "#5d8aa8", "delete": "#555",
  "boundary in": "#998d5c", "boundary out": "#998d5c", "data in": "#666", "message": "#aaa"};
const canvas = document.getElementById("chart"), tip = document.getElementById("tip");
const left = 110, top_ = 24, height = 20, gap = 8;
const rows = [];
for (let gpu = 0; gpu < data.plan.gpus; ++gpu)
  for (let stream = 0; stream < data.streams.length; ++stream)
    if (data.steps.some(s => s[0] === gpu && s[1] === stream)) rows.push([gpu, stream]);
const place = new Map();
let y = top_, last = 0;
for (const row of rows) {
  if (row[0] !== last) { y += gap; last = row[0]; }
  place.set(row.join(), y);
  y += height;
}
const end = data.plan.seconds;
let from = 0, until = end;
canvas.style.height = y + 8 + "px";
const legend = document.getElementById("legend");
for (const kind of new Set(data.steps.map(s => data.kinds[s[2]]))) {
  const span = document.createElement("span"), box = document.createElement("i");
  box.style.background = colors[kind];
  span.append(box, kind);
  legend.append(span);
}
const x = time => left + (time - from) / (until - from) * (canvas.clientWidth - left - 8);
const timeAt = px => from + (px - left) / (canvas.clientWidth - left - 8) * (until - from);
function draw() {
  const ratio = window.devicePixelRatio || 1, style = getComputedStyle(document.documentElement);
  canvas.width = canvas.clientWidth * ratio;
  canvas.height = canvas.clientHeight * ratio;
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio);
  c.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  c.font = "12px system-ui, sans-serif";
  c.textBaseline = "middle";
  const ink = style.getPropertyValue("--ink"), line = style.getPropertyValue("--line");
  const rough = (until - from) / 10, power = 10 ** Math.floor(Math.log10(rough));
  const tick = [1, 2, 5, 10].map(k => k * power).find(k => k >= rough);
  for (let t = Math.ceil(from / tick) * tick; t <= until; t += tick) {
    c.fillStyle = line;
    c.fillRect(x(t), top_ - 4, 1, y);
    c.fillStyle = ink;
    c.fillText(+t.toFixed(6) + " s", x(t) + 2, 10);
  }
  for (const [gpu, stream] of rows) {
    const at = place.get([gpu, stream].join());
    c.fillStyle = ink;
    c.fillText("GPU " + gpu + "  " + data.streams[stream], 4, at + height / 2);
    c.fillStyle = line;
    c.fillRect(left, at + height - 1, canvas.clientWidth, 1);
  }
  c.save();
  c.beginPath();
  c.rect(left, 0, canvas.clientWidth, canvas.clientHeight);
  c.clip();
  for (const s of data.steps) {
    if (s[10] < from || s[9] > until) continue;
    c.fillStyle = colors[data.kinds[s[2]]];
    c.fillRect(x(s[9]), place.get(s[0] + "," + s[1]) + 1, Math.max(.7, x(s[10]) - x(s[9]) - .3),
               height - 3);
  }
  c.restore();
}
function stepAt(event) {
  const box = canvas.getBoundingClientRect(), time = timeAt(event.clientX - box.left);
  const slack = (until - from) / canvas.clientWidth * 2, py = event.clientY - box.top;
  return data.steps.find(s => {
    const at = place.get(s[0] + "," + s[1]);
    return py >= at && py < at + height && time >= s[9] - slack && time <= s[10] + slack;
  });
}
let drag = null;
canvas.onpointerdown = e => { drag = [e.clientX, from, until]; canvas.setPointerCapture(e.pointerId); };
canvas.onpointerup = () => { drag = null; };
canvas.onpointerleave = () => { tip.style.display = "none"; };
canvas.onpointermove = e => {
  if (drag) {
    const by = (drag[0] - e.clientX) / (canvas.clientWidth - left - 8) * (drag[2] - drag[1]);
    const span = drag[2] - drag[1];
    from = Math.max(0, Math.min(end - span, drag[1] + by));
    until = from + span;
    draw();
    return;
  }
  const s = stepAt(e);
  tip.style.display = s ? "block" : "none";
  if (!s) return;
  tip.textContent = data.kinds[s[2]] + ", task " + s[3] + "\\nlayers " + s[4] + " to " + s[5] +
    "\\nsamples " + s[6] + " to " + (s[7] - 1) +
    (s[8] ? "\\n" + (s[8] / 2 ** 20).toFixed(1) + " MiB" : "") +
    "\\n" + s[9].toFixed(4) + " to " + s[10].toFixed(4) + " s (" +
    ((s[10] - s[9]) * 1000).toFixed(2) + " ms)";
  tip.style.left = Math.min(e.clientX + 14, innerWidth - 220) + "px";
  tip.style.top = e.clientY + 14 + "px";
};
canvas.onwheel = e => {
  e.preventDefault();
  const at = timeAt(e.clientX - canvas.getBoundingClientRect().left);
  const scale = Math.exp(e.deltaY * .0015);
  from = Math.max(0, at - (at - from) * scale);
  until = Math.min(end, Math.max(from + 1e-6, at + (until - at) * scale));
  draw();
};
canvas.ondblclick = () => { from = 0; until = end; draw(); };
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();
</script>
"""


def page(schedule):
    """The page of a schedule, as `--schedule` writes it."""
    plan = schedule["plan"]
    title = (f"{plan['layers']} layers, {plan['batch']} samples on {plan['gpus']} "
             f"GPU{'s' if plan['gpus'] > 1 else ''}: {plan['seconds']:.3f} s")
    swapped = (plan["swap_in_bytes"] + plan["swap_out_bytes"]) / 2**30
    summary = (f"{plan['mode']}, rules {plan['rules']}: {swapped:.2f} GiB between host and GPUs, "
               f"{plan['p2p_bytes'] / 2**30:.2f} GiB between GPUs, computing "
               f"{plan['compute_fraction'] * 100:.1f} % of the time, at most "
               f"{max(plan['peak_bytes']) / 2**30:.2f} GiB on a GPU.")
    # "</" would end the script that the data is in.
    data = json.dumps(schedule, separators=(",", ":")).replace("</", "<\\/")
    return _PAGE % {"title": title, "summary": summary, "data": data}


def write(schedule_path, page_path):
    with open(schedule_path, encoding="utf-8") as file:
        text = page(json.load(file))
    with open(page_path, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    try:
        write(*sys.argv[1:3])
    except OSError as problem:
        sys.exit(f"harmony: {problem}")
