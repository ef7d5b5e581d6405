// Draws which blocks left the device, when they came back, and whether an op waited for them. Each
// op that requested blocks has a row, on the axis of the timeline.
"use strict";

class Swaps {
  constructor(history, timeline) {
    this.history = history;
    this.timeline = timeline;
    this.row = 18;
    this.trips = this.findTrips();
    byId("swap").hidden = !this.trips.length && !history.report.figures.swap_out_bytes;
    if (byId("swap").hidden) return;
    this.rows = this.findRows();
    this.tell();
    this.canvas = byId("trips");
    this.canvas.style.height = this.rows.length * this.row + 8 + "px";
    this.redraw = drawn(this.canvas, (...where) => this.draw(...where));
    timeline.view.attach(this.canvas, TIMELINE.left, TIMELINE.right, this.redraw);
    this.canvas.addEventListener("pointermove", event => this.hover(event));
  }

  // A trip lasts until the block comes back or is freed, or until the log ends.
  findTrips() {
    const {history} = this, {marks} = history, open = new Map(), trips = [];
    for (const i of history.moves) {
      const block = marks.address[i] - 1;
      if (block < 0) continue;
      if (marks.kind[i] === KIND.evict) {
        const trip = {block, bytes: marks.bytes[i], left: i, back: null, late: false};
        open.set(block, trip);
        trips.push(trip);
      } else if (open.has(block)) {
        Object.assign(open.get(block), {back: i, late: marks.key[i] === 1});
        open.delete(block);
      }
    }
    return trips;
  }

  findRows() {
    const rows = new Map();
    for (const trip of this.trips) {
      const group = this.history.group[trip.block];
      if (!rows.has(group))
        rows.set(group, {label: this.history.groups[group].label, bytes: 0, trips: []});
      rows.get(group).bytes += trip.bytes;
      rows.get(group).trips.push(trip);
    }
    return [...rows.values()].sort((a, b) => b.bytes - a.bytes).slice(0, 20);
  }

  tell() {
    const {figures} = this.history.report;
    const back = this.trips.filter(trip => trip.back !== null);
    const late = back.filter(trip => trip.late);
    byId("swap-words").textContent = size(figures.swap_out_bytes) + " left the device, "
      + size(figures.swap_in_bytes) + " came back; at most " + size(figures.peak_swapped)
      + " were on the host. Of " + count(this.trips.length) + " trips, " + count(back.length)
      + " came back, " + count(late.length) + " of them while an op was waiting ("
      + duration(figures.swap_wait_ns) + " in total)" + (this.trips.length > back.length
        ? "; the others ended with a free or with the log." : ".");
  }

  placeOf(trip) {
    const {timeline, history} = this;
    const end = trip.back === null ? timeline.xOfInstant(Math.min(history.died[trip.block],
      history.ops)) : timeline.xOfMark(trip.back);
    return [timeline.xOfMark(trip.left), end];
  }

  draw(context, width, height) {
    context.clearRect(0, 0, width, height);
    const colors = {late: theme.color("bad"), early: theme.color("host")};
    this.rows.forEach((row, i) => {
      const y = i * this.row;
      context.fillStyle = theme.color("card");
      context.fillRect(TIMELINE.left, y, this.timeline.width(), this.row - 2);
      context.save();
      context.beginPath();
      context.rect(TIMELINE.left, y, this.timeline.width(), this.row);
      context.clip();
      for (const trip of row.trips) {
        const [from, until] = this.placeOf(trip);
        if (until < TIMELINE.left || from > width) continue;
        context.fillStyle = trip.late ? colors.late : colors.early;
        context.globalAlpha = .8;
        context.fillRect(from, y + 2, Math.max(until - from, 1), this.row - 6);
      }
      context.globalAlpha = 1;
      context.fillStyle = theme.color("ink");
      context.fillText(fitted(context, row.label, 420), TIMELINE.left + 6, y + this.row / 2 - 1);
      context.restore();
      context.fillStyle = theme.color("quiet");
      context.textAlign = "right";
      context.fillText(size(row.bytes), TIMELINE.left - 8, y + this.row / 2 - 1);
      context.textAlign = "left";
    });
  }

  hover(event) {
    const row = this.rows[Math.floor(event.offsetY / this.row)];
    if (!row || event.buttons) return tip.hide();
    const trip = row.trips.find(each => {
      const [from, until] = this.placeOf(each);
      return event.offsetX >= from - 1 && event.offsetX <= until + 1;
    });
    const {marks} = this.history, lines = [row.label];
    if (!trip) lines.push(size(row.bytes) + " left in " + count(row.trips.length) + " trips");
    else {
      lines.push(size(trip.bytes) + " left at " + duration(marks.time[trip.left]) + ", copied in "
        + duration(marks.stream[trip.left]));
      lines.push(trip.back === null ? "did not come back" : "back at "
        + duration(marks.time[trip.back]) + ", copied in " + duration(marks.stream[trip.back])
        + (trip.late ? ": an op waited for it" : ": no op waited"));
    }
    tip.show(event, lines.join("\n"));
  }
}
