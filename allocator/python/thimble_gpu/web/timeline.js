// Draws live bytes over time, stacked, with lines for reserved, limit and bytes on the host.
//
// Every column of pixels shows its highest moment, with the layers at that moment, and its lowest
// value. Nothing is averaged; zooming in to single events shows each one.
"use strict";

const TIMELINE = {left: 76, right: 12, top: 22, bottom: 26};

class Timeline {
  constructor(history, view) {
    this.history = history;
    this.view = view;
    this.axis = "time";
    this.canvas = byId("timeline");
    this.chosen = history.peak;
    this.onChoose = () => {};
    this.most = Math.max(history.total[history.peak], history.reserved.most()) * 1.04 || 1;
    const limit = history.limit.most();
    this.showsLimit = limit > 0 && limit < 1.5 * this.most;
    if (this.showsLimit) this.most = Math.max(this.most, limit * 1.04);
    this.stack("scope");
    this.redraw = drawn(this.canvas, (...where) => this.draw(...where));
    view.attach(this.canvas, TIMELINE.left, TIMELINE.right, this.redraw,
      event => this.onChoose(this.highestAt(event.offsetX)));
    this.canvas.addEventListener("pointermove", event => this.hover(event));
  }

  stack(way) {
    this.layers = STACKS[way](this.history);
    this.colors = this.layers.names.map((name, i) =>
      name === THE_REST ? REST : PALETTE[i % PALETTE.length]);
    this.redraw?.();
  }

  // Chooses the axis that shows more: events, if most of them fall into a small part of the time.
  betterAxis() {
    const bins = new Float64Array(64), {time, ops, end} = this.history;
    for (let i = 0; i < ops; ++i) bins[Math.min(Math.floor(time[i] / end * 64), 63)] += 64 / ops;
    return bins.filter(share => share > .1).length < 20 ? "events" : "time";
  }
  // Switches to time, or to events of equal width.
  setAxis(axis) {
    this.axis = axis;
    if (axis === "time") this.view.reset(this.history.end, 100);
    else this.view.reset(this.history.ops, 8);
  }
  width() { return Math.max(this.canvas.clientWidth - TIMELINE.left - TIMELINE.right, 1); }
  valueAt(x) {
    const {from, until} = this.view;
    return from + (x - TIMELINE.left) / this.width() * (until - from);
  }
  xOf(value) {
    return TIMELINE.left + (value - this.view.from) / (this.view.until - this.view.from)
      * this.width();
  }
  xOfMark(mark) {
    const {marks} = this.history;
    return this.xOf(this.axis === "time" ? marks.time[mark] : marks.at[mark]);
  }
  xOfInstant(instant) {
    return this.xOf(this.axis === "time" ? this.history.timeOf(instant) : instant);
  }
  instantOf(value) {
    return this.axis === "time" ? this.history.instantAt(value)
      : clamp(Math.floor(value), 0, this.history.ops);
  }
  // The instants in the column of pixels at x.
  columnAt(x) {
    return [this.instantOf(this.valueAt(x)), this.instantOf(this.valueAt(x + 1))];
  }
  highestAt(x) { return this.history.extremes.highest(...this.columnAt(Math.floor(x))); }

  draw(context, width, height) {
    const {left, top, bottom} = TIMELINE, low = height - bottom;
    const y = bytes => low - bytes / this.most * (low - top);
    context.clearRect(0, 0, width, height);
    this.drawGrid(context, width, low, y);
    context.save();
    context.beginPath();
    context.rect(left, 0, this.width(), height);
    context.clip();
    this.drawLayers(context, low, y);
    this.drawSteps(context, top, low);
    this.drawSeries(context, this.history.onHost, "host", y, []);
    this.drawSeries(context, this.history.reserved, "reserved", y, []);
    if (this.showsLimit) this.drawSeries(context, this.history.limit, "limit", y, [6, 4]);
    this.drawChosen(context, top, low, y);
    context.restore();
  }

  drawGrid(context, width, low, y) {
    context.strokeStyle = theme.color("line");
    context.fillStyle = theme.color("quiet");
    context.lineWidth = 1;
    context.textAlign = "right";
    for (const bytes of byteTicks(this.most, 6)) {
      const at = Math.round(y(bytes)) + .5;
      context.beginPath();
      context.moveTo(TIMELINE.left, at);
      context.lineTo(width - TIMELINE.right, at);
      context.stroke();
      context.fillText(bytes ? size(bytes) : "0", TIMELINE.left - 8, at);
    }
    context.textAlign = "center";
    for (const value of ticks(this.view.from, this.view.until, width / 130)) {
      const text = this.axis === "time" ? roundDuration(value) : count(value);
      context.fillText(text, clamp(this.xOf(value), TIMELINE.left + 20, width - 34), low + 14);
    }
    context.textAlign = "left";
  }

  // Draws the layers from the lowest to the highest, paler above the lowest value of the column.
  drawLayers(context, low, y) {
    if (!this.layers.names.length) return;
    const {extremes, total} = this.history, columns = Math.ceil(this.width());
    const tops = this.layers.names.map(() => new Float64Array(columns));
    const least = new Float64Array(columns);
    for (let column = 0; column < columns; ++column) {
      const [from, until] = this.columnAt(TIMELINE.left + column);
      const bytes = this.layers.at(extremes.highest(from, until));
      least[column] = total[extremes.lowest(from, until)];
      for (let layer = 0, sum = 0; layer < tops.length; ++layer)
        tops[layer][column] = y(sum += bytes[layer]);
    }
    for (let layer = tops.length - 1; layer >= 0; --layer) {
      context.fillStyle = this.colors[layer];
      context.beginPath();
      context.moveTo(TIMELINE.left, low);
      for (let column = 0; column < columns; ++column) {
        context.lineTo(TIMELINE.left + column, tops[layer][column]);
        context.lineTo(TIMELINE.left + column + 1, tops[layer][column]);
      }
      context.lineTo(TIMELINE.left + columns, low);
      context.fill();
    }
    context.fillStyle = theme.color("back") + "70";
    for (let column = 0; column < columns; ++column) {
      const highest = tops.at(-1)[column], lowest = y(least[column]);
      if (lowest - highest > 1)
        context.fillRect(TIMELINE.left + column, highest, 1, lowest - highest);
    }
  }

  drawSteps(context, top, low) {
    const {steps} = this.history, shown = steps.map(mark => this.xOfMark(mark));
    context.strokeStyle = theme.color("quiet");
    context.fillStyle = theme.color("quiet");
    context.lineWidth = .6;
    let free = 0, shownUntil = 0;  // end of the last text, and position of the last line
    shown.forEach((x, i) => {
      if (x < TIMELINE.left || x > TIMELINE.left + this.width()) return;
      if (x < shownUntil + 5) return;
      shownUntil = x;
      context.beginPath();
      context.moveTo(x, top - 6);
      context.lineTo(x, low);
      context.stroke();
      if (x < free) return;
      context.fillText("step " + (i + 1), x + 3, 9);
      free = x + 60;
    });
  }

  drawSeries(context, series, color, y, dash) {
    const {times, instants, values} = series;
    if (!values.length || !series.most()) return;
    const places = this.axis === "time" ? times : instants;
    const first = Math.max(upperBound(places, this.view.from) - 1, 0);
    context.setLineDash(dash);
    context.beginPath();
    for (let i = first; i < values.length && places[i] <= this.view.until; ++i) {
      const x = Math.max(this.xOf(places[i]), TIMELINE.left - 2);
      if (i > first) context.lineTo(x, y(values[i - 1]));
      context.lineTo(x, y(values[i]));
    }
    context.lineTo(TIMELINE.left + this.width(), y(this.lastOf(places, values)));
    if (!dash.length) {  // a rim that is visible on every colour
      context.strokeStyle = theme.color("back");
      context.lineWidth = 3.6;
      context.stroke();
    }
    context.strokeStyle = theme.color(color);
    context.lineWidth = 1.6;
    context.stroke();
    context.setLineDash([]);
  }
  lastOf(places, values) { return values[upperBound(places, this.view.until) - 1] ?? values[0]; }

  drawChosen(context, top, low, y) {
    const x = this.xOfInstant(this.chosen);
    context.strokeStyle = theme.color("accent");
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x, top - 8);
    context.lineTo(x, low);
    context.stroke();
    context.fillStyle = theme.color("accent");
    context.beginPath();
    context.arc(x, y(this.history.total[this.chosen]), 4, 0, 7);
    context.fill();
  }

  hover(event) {
    if (event.buttons || event.offsetX < TIMELINE.left) return tip.hide();
    const {history} = this, instant = this.highestAt(event.offsetX);
    const [from, until] = this.columnAt(Math.floor(event.offsetX));
    const lowest = history.total[history.extremes.lowest(from, until)];
    const lines = [duration(history.timeOf(instant)) + ", event " + count(instant)
      + (history.stepAt(instant) ? ", step " + history.stepAt(instant) : "")];
    lines.push("in use    " + this.exact(history.total[instant]));
    if (until > from) lines.push("lowest    " + this.exact(lowest) + " in these "
      + count(until - from) + " events");
    lines.push("reserved  " + this.exact(history.reserved.at(instant)));
    const host = history.onHost.at(instant);
    if (host) lines.push("on host   " + this.exact(host));
    const bytes = [...this.layers.at(instant)].map((held, i) => [held, this.layers.names[i]]);
    bytes.sort((a, b) => b[0] - a[0]).slice(0, 5).forEach(([held, name]) => {
      if (held) lines.push("  " + size(held).padStart(11) + "  " + short(name, 70));
    });
    tip.show(event, lines.join("\n"));
  }
  exact(bytes) { return size(bytes) + (bytes >= 1024 ? " (" + count(bytes) + ")" : ""); }

  legend() {
    const entries = this.layers.names.map((name, i) => [name, this.colors[i], ""]);
    entries.push(["reserved", "var(--reserved)", "stroke"]);
    if (this.showsLimit) entries.push(["limit", "var(--limit)", "stroke"]);
    if (this.history.onHost.most()) entries.push(["on the host", "var(--host)", "stroke"]);
    return entries.map(([name, color, className]) => {
      const box = element("i", {className});
      box.style[className ? "color" : "background"] = color;
      return element("span", {}, box, element("b", {title: name}, short(name, 46)));
    });
  }
}
