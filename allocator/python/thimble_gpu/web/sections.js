// The texts and figures of a report: banners, headline, refusals.
"use strict";

function showBanners(history) {
  const {report: {figures}, marks} = history, banners = [];
  const last = history.marksOf(KIND.oom).at(-1);
  if (last !== undefined && !wasServed(history, last))
    banners.push("Memory ran out at " + duration(marks.time[last]) + ": "
      + size(marks.bytes[last]) + " requested and refused. See below.");
  if (figures.note) banners.push(figures.note[0].toUpperCase() + figures.note.slice(1) + ".");
  if (!figures.allocations) banners.push("This log has no allocations.");
  byId("banners").replaceChildren(...banners.map(text =>
    element("p", {className: "banner", role: "alert"}, text)));
}

function showHeadline(history) {
  const {figures, bfc} = history.report;
  const card = (label, value, note, className = "") =>
    element("div", {className: "card " + className}, element("span", {className: "quiet"}, label),
      element("strong", {}, value), element("span", {className: "quiet"}, note));
  const inAdvance = figures.reserved_at_start >= figures.peak_reserved && figures.peak_reserved > 0;
  const cards = [
    card("Peak in use", size(figures.peak_in_use), count(figures.peak_in_use) + " bytes requested"),
    card("Reserved", size(figures.peak_reserved), inAdvance ? "preallocated"
      : size(figures.reserved_at_peak) + " at the peak"),
    card("Fragmentation", inAdvance ? "unknown" : figures.fragmentation.toFixed(1) + " %",
      inAdvance ? "all memory was preallocated" : "of the memory reserved at the peak"),
    bfc.bytes ? card("BFC would need", size(bfc.bytes), bfc.note,
      bfc.bytes > figures.reserved_at_peak ? "good" : "")
      : card("BFC would need", "unknown", bfc.note),
    card("Stitched", count(figures.stitches), "blocks made of pieces"),
    card("Steps", count(figures.steps), (history.steps.length && history.steps.length
      < figures.steps ? count(history.steps.length) + " of them large; " : "")
      + count(figures.allocations) + " allocations in " + duration(figures.duration_ns)),
  ];
  if (figures.limit) cards.splice(2, 0, card("Limit", size(figures.limit),
    percent(figures.peak_reserved / figures.limit) + " of it was reserved"));
  if (figures.plan_requests)
    cards.push(card("Plan", percent(figures.plan_hits / figures.plan_requests),
      "of " + count(figures.plan_requests) + " requests at their planned place"));
  if (figures.swap_out_bytes)
    cards.push(card("On the host, at most", size(figures.peak_swapped), size(figures.swap_out_bytes)
      + " out, " + size(figures.swap_in_bytes) + " back; ops waited "
      + duration(figures.swap_wait_ns)));
  if (figures.out_of_memory)
    cards.push(card("Out of memory", count(figures.out_of_memory), "requests were refused", "bad"));
  byId("headline").replaceChildren(...cards);
}

// Says in two sentences where the memory went.
function tellPeak(history) {
  const {peak, total} = history, [first] = history.holders(peak);
  if (!first) return "";
  const stays = [0, 0, 0];
  for (const block of history.liveBlocks(peak))
    stays[history.lifetimeOf(block)] += history.bytes[block];
  const step = history.stepAt(peak);
  const lasting = stays[0] + stays[1], part = percent(lasting / total[peak]);
  return "The peak of " + size(total[peak]) + " was at " + duration(history.timeOf(peak))
    + (step ? ", in step " + count(step) + " of " + count(history.steps.length) : "")
    + ". The largest holder is " + first.label + " with " + size(first.bytes) + " ("
    + percent(first.bytes / total[peak]) + "). " + (history.steps.length > 1
      ? part + " of the peak outlives a step: weights, the optimizer's state and what the program "
        + "keeps. The rest lives within a step: activations and gradients."
      : part + " of the peak is still held at the end of the log.");
}

// Warns if the memory held between steps grows: the program may keep something by mistake.
function tellGrowth(history) {
  const kept = history.steps.map(mark => history.total[history.marks.at[mark]]);
  if (kept.length < 8) return "";
  const before = kept[Math.floor(kept.length / 4)], after = kept.at(-1);
  if (after < 1.25 * before || after - before < .05 * history.total[history.peak]) return "";
  return " Memory held between steps has grown from " + size(before) + " to " + size(after)
    + ": check what the program keeps from one step to the next.";
}

const MOST_REFUSALS = 20;

function showRefusals(history, choose) {
  const {marks, report: {texts}} = history, all = history.marksOf(KIND.oom);
  const found = all.slice(-MOST_REFUSALS);
  byId("oom").hidden = !found.length;
  byId("oom-words").textContent = all.length > found.length
    ? "The last " + found.length + " of " + count(all.length) + " refusals." : "";
  byId("refusals").replaceChildren(...found.map((i, number) => {
    const served = wasServed(history, i), last = number === found.length - 1;
    const show = element("button", {type: "button"}, "Show this moment");
    show.onclick = () => choose(marks.at[i]);
    const asked = history.groups[marks.key[i]]?.label ?? "";
    return element("article", {className: served ? "refusal" : "refusal bad"},
      element("p", {}, element("strong", {}, size(marks.bytes[i]) + " were refused at "
        + duration(marks.time[i])), " " + asked + ". " + (served
        ? "The same request was served later." : last ? "It was never served: the run "
        + "ended here or continued without this memory." : "It was not served.") + " ", show),
      element("pre", {}, texts[marks.address[i]] ?? ""));
  }));
}

// Whether a later request of the same kind was served; sizes are rounded up, by at most a chunk.
function wasServed(history, mark) {
  const {marks} = history, bytes = marks.bytes[mark], group = marks.key[mark];
  const slack = Math.max(marks.key[history.marksOf(KIND.limit)[0]] ?? 0, 256);
  for (let block = 0; block < history.blocks; ++block)
    if (history.born[block] > marks.at[mark] && history.group[block] === group
        && history.bytes[block] <= bytes && history.bytes[block] > bytes - slack) return true;
  return false;
}
