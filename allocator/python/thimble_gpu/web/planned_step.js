// Draws the blocks of one planned step where they actually were, and whether the plan wanted them
// there. Events go right, addresses go up; addresses without planned places are left out.
"use strict";

const PLANNED = {left: 76, right: 12, top: 20, bottom: 22};
const UNIT = 256;  // requests are rounded up to it

class PlannedStep {
  constructor(history) {
    this.history = history;
    this.plans = this.findPlans();
    this.spans = this.findSpans();
    byId("plan").hidden = !history.report.figures.plan_requests && !this.plans.length;
    this.canvas = byId("planned");
    this.canvas.hidden = !this.plans.some(plan => plan.sites.length);
    this.redraw = drawn(this.canvas, (...where) => this.draw(...where));
    this.canvas.addEventListener("pointermove", event => this.hover(event));
    this.canvas.addEventListener("pointerleave", tip.hide);
    this.listPlans();
    this.show(history.ops);
  }

  // Lists every plan, and the gaps in which none serves. A site that moves during a plan has two
  // places in it.
  findPlans() {
    const {marks} = this.history, plans = [];
    for (const i of this.history.marksOf(KIND.planned, KIND.place)) {
      const {at, address, bytes, key} = marks;
      if (marks.kind[i] === KIND.planned)
        plans.push({mark: i, at: at[i], height: bytes[i], bound: key[i], sites: []});
      else plans.at(-1)?.sites.push({at: at[i], address: address[i], bytes: bytes[i],
        group: key[i]});
    }
    return plans;
  }

  // Lists every step that began with a plan; without steps, everything that each plan served.
  findSpans() {
    const {history, plans} = this;
    const steps = history.steps.map((mark, i) => {
      const from = history.marks.at[mark];
      return {plan: plans.findLast(plan => plan.at <= from), from, number: i + 1,
        until: history.marks.at[history.steps[i + 1]] ?? history.ops};
    });
    const all = plans.map((plan, i) => ({plan, from: plan.at,
      until: plans[i + 1]?.at ?? history.ops}));
    return (steps.length ? steps : all).filter(span => span.plan?.sites.length);
  }

  // The step of an instant if it began with a plan, otherwise the last step that did.
  show(instant) {
    this.span = this.spans.find(span => span.from <= instant && instant < span.until)
      ?? this.spans.at(-1);
    this.blocks = this.span ? this.blocksOf(this.span) : [];
    this.tell();
    this.redraw();
  }

  // The blocks that came in the step, and those that were in the plan's memory before.
  blocksOf({plan, from, until}) {
    const {history} = this, {address, bytes, born, died, group, groups} = history;
    const sites = plan.sites.filter(site => site.at <= until);
    this.memory = new PlanMemory(sites);
    // Keys requests by caller, if known, and by size. Blocks without a name are grouped by size
    // before rounding.
    const nameOf = (group, place, bytes) => (groups[group].kind === "name"
      || groups[group].kind === "key" ? group : "") + " " + place + " " + bytes;
    const places = new Set(sites.map(site => nameOf(site.group, site.address, site.bytes)));
    const found = [];
    for (let block = 0; block < history.blocks && born[block] <= until; ++block) {
      if (died[block] <= from || groups[group[block]].kind === "small") continue;
      const isNew = born[block] > from, rounded = Math.ceil(bytes[block] / UNIT) * UNIT;
      const isInside = this.memory.offsetOf(address[block]) !== null;
      const isPlanned = places.has(nameOf(group[block], address[block], rounded));
      if (isNew || isInside)
        found.push({block, kind: !isNew ? "older" : isPlanned ? "planned"
          : isInside ? "elsewhere" : "outside"});
    }
    return found;
  }

  counts() {
    const counts = {older: 0, planned: 0, elsewhere: 0, outside: 0};
    for (const {kind} of this.blocks) ++counts[kind];
    return counts;
  }

  tell() {
    const {figures} = this.history.report, {planned, elsewhere, outside} = this.counts();
    let words = count(figures.plan_hits) + " of " + count(figures.plan_requests)
      + " requests were at their planned place ("
      + percent(figures.plan_hits / (figures.plan_requests || 1)) + "), "
      + count(figures.plan_repeats) + " at the same address as in the previous step.";
    if (this.span)
      words += (this.span.number ? " Below is step " + count(this.span.number) + ", with "
        : " Below is all that the last plan served: ") + count(planned + elsewhere + outside)
        + " new blocks: " + count(planned) + " where the plan has them, " + count(elsewhere)
        + " elsewhere in its memory, " + count(outside) + " outside: small blocks, which plans omit, "
        + "and requests that are new to the plan.";
    byId("plan-words").textContent = words;
    byId("plan-legend").hidden = !this.span;
  }

  listPlans() {
    byId("plans").replaceChildren(...this.plans.map(plan => element("tr", {},
      element("td", {}, duration(this.history.marks.time[plan.mark])),
      element("td", {}, plan.height ? size(plan.height) : "no plan serves"),
      element("td", {}, size(plan.bound)),
      element("td", {}, plan.height ? percent(plan.height / (plan.bound || 1) - 1) : ""),
      element("td", {}, size(this.history.reserved.at(plan.at))))));
  }

  placeOf(block) {
    const {from, until} = this.span, {born, died, address, bytes} = this.history;
    const width = this.canvas.clientWidth - PLANNED.left - PLANNED.right;
    const height = this.canvas.clientHeight - PLANNED.top - PLANNED.bottom;
    const x = instant => PLANNED.left + width * (clamp(instant, from, until) - from)
      / Math.max(until - from, 1);
    const y = offset => PLANNED.top + height * (1 - Math.min(offset / this.memory.bytes, 1));
    const low = this.memory.offsetOf(address[block]) ?? 0;
    return {left: x(born[block]), right: x(died[block]), top: y(low + bytes[block]), bottom: y(low)};
  }

  draw(context, width, height) {
    context.clearRect(0, 0, width, height);
    if (!this.span) return;
    const colors = {older: theme.color("free"), planned: theme.color("accent"),
      elsewhere: theme.color("bad")};
    for (const {block, kind} of this.blocks) {
      if (!colors[kind]) continue;
      const {left, right, top, bottom} = this.placeOf(block);
      context.fillStyle = colors[kind];
      context.globalAlpha = .75;
      context.fillRect(left, top, Math.max(right - left - .5, .5), Math.max(bottom - top - .5, .5));
    }
    context.globalAlpha = 1;
    const inner = height - PLANNED.top - PLANNED.bottom;
    const line = (bytes, name, color) => {
      const y = PLANNED.top + inner * (1 - bytes / this.memory.bytes);
      context.fillStyle = color;
      context.fillRect(PLANNED.left, y, width - PLANNED.left - PLANNED.right, 1.5);
      context.textAlign = "right";
      context.fillText(size(bytes), PLANNED.left - 8, y);
      context.fillText(name, width - PLANNED.right, y - 8);
      context.textAlign = "left";
    };
    line(0, "", theme.color("quiet"));
    line(this.memory.bytes, "all places", theme.color("reserved"));
    context.fillStyle = theme.color("quiet");
    context.fillText(count(this.span.until - this.span.from) + " allocations and frees",
      PLANNED.left, height - PLANNED.bottom / 2);
  }

  hover(event) {
    const found = this.span && this.blocks.find(({block, kind}) => {
      if (kind === "outside") return false;
      const {left, right, top, bottom} = this.placeOf(block);
      return event.offsetX >= left && event.offsetX <= Math.max(right, left + 1)
        && event.offsetY >= top && event.offsetY <= Math.max(bottom, top + 1);
    });
    if (!found) return tip.hide();
    const {history} = this, {block, kind} = found;
    tip.show(event, [history.groups[history.group[block]].label, size(history.bytes[block])
      + " at " + size(this.memory.offsetOf(history.address[block])) + " of the plan's memory",
      {planned: "where the plan has it", elsewhere: "the plan has it elsewhere, or not at all",
        older: "since " + duration(history.timeOf(history.born[block]))}[kind]].join("\n"));
  }
}

// The memory of a plan's places, without the gaps between them.
class PlanMemory {
  constructor(sites) {
    this.runs = [];  // {from, until, offset}
    this.bytes = 0;
    for (const {address, bytes} of [...sites].sort((a, b) => a.address - b.address)) {
      const last = this.runs.at(-1), until = address + bytes;
      if (!last || address > last.until)
        this.runs.push({from: address, until, offset: this.bytes});
      else last.until = Math.max(last.until, until);
      this.bytes = this.runs.at(-1).offset + this.runs.at(-1).until - this.runs.at(-1).from;
    }
  }
  // Null for an address outside of the plan.
  offsetOf(address) {
    const run = this.runs[upperBound(this.runs, address, each => each.from) - 1];
    return run && address < run.until ? run.offset + address - run.from : null;
  }
}
