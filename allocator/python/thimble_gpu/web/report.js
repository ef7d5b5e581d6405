// Assembles the parts of a report. One instant is chosen; the table, the icicle and the map show
// it.
"use strict";

async function openReport() {
  const report = JSON.parse(byId("report").textContent);
  const bytes = await inflated(byId("columns").textContent);
  const history = new History(report, unpack(bytes, report.columns));
  const view = new View(history.end, 100);
  const timeline = new Timeline(history, view);
  const parts = {table: new HoldersTable(history), icicle: new Icicle(history),
    map: new AddressMap(history), planned: new PlannedStep(history)};

  const choose = instant => {
    timeline.chosen = clamp(instant, 0, history.ops);
    timeline.redraw();
    byId("chosen").textContent = (timeline.chosen === history.peak ? "The peak: " : "Chosen: ")
      + duration(history.timeOf(timeline.chosen)) + ", event " + count(timeline.chosen) + " of "
      + count(history.ops) + ", " + size(history.total[timeline.chosen]) + " in use";
    parts.table.show(timeline.chosen);
    parts.icicle.show(timeline.chosen);
    parts.planned.show(timeline.chosen);
    parts.map.show(timeline.chosen, block => timeline.colors[timeline.layers.layerOf[block]]);
  };
  timeline.onChoose = choose;
  const showStack = () => {
    byId("legend").replaceChildren(...timeline.legend());
    choose(timeline.chosen);
  };

  byId("stack").onchange = event => {
    timeline.stack(event.target.value);
    showStack();
  };
  byId("axis").onchange = event => { timeline.setAxis(event.target.value); };
  byId("all").onclick = () => view.all();
  byId("peak").onclick = () => choose(history.peak);
  byId("before").onclick = () => choose(timeline.chosen - 1);
  byId("after").onclick = () => choose(timeline.chosen + 1);
  timeline.canvas.addEventListener("keydown", event => {
    const keys = {",": () => choose(timeline.chosen - 1), ".": () => choose(timeline.chosen + 1),
      p: () => choose(history.peak)};
    keys[event.key]?.();
  });

  showBanners(history);
  showHeadline(history);
  byId("peak-words").textContent = tellPeak(history) + tellGrowth(history);
  showStack();
  byId("axis").value = timeline.betterAxis();
  timeline.setAxis(byId("axis").value);
  const swaps = new Swaps(history, timeline);
  showRefusals(history, choose);
  addEventListener("resize", () => parts.map.layOut());
  // For tests and other programs that inspect the page.
  window.thimble = {report, history, view, timeline, choose, swaps, ...parts};
  document.documentElement.dataset.ready = "yes";
}

openReport().catch(error => {
  byId("banners").append(element("p", {className: "banner bad", role: "alert"},
    "This page cannot be displayed: " + error.message
    + ". Use a browser of 2023 or later (Chromium 97, Firefox 113, Safari 16.4)."));
  throw error;
});
