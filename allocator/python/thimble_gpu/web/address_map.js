// Draws the home addresses at one instant, row by row, and below them the stitched blocks: each is
// a bar of its pieces, and lines lead from the pieces to their places at home.
"use strict";

class AddressMap {
  constructor(history) {
    this.history = history;
    this.canvas = byId("map");
    this.row = 17;
    this.gap = 4;
    this.left = 76;
    this.hot = null;  // the block under the pointer
    this.redraw = drawn(this.canvas, (...where) => this.draw(...where));
    this.canvas.addEventListener("pointermove", event => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => {
      tip.hide();
      this.heat(this.bars?.[0] ?? null);
    });
    this.canvas.tabIndex = 0;
    this.canvas.addEventListener("keydown", event => this.key(event));
  }

  show(instant, colorOf) {
    const {history} = this;
    const map = this.map = new Mappings(history, instant);
    this.colorOf = colorOf;
    const absent = onHostAt(history, instant);
    this.blocks = history.liveBlocks(instant).map(block => {
      const bytes = history.bytes[block], address = history.address[block];
      return {block, bytes, address, pieces: map.piecesOf(address, bytes),
        away: absent.has(block)};
    });
    this.stitched = this.blocks.filter(({pieces}) => pieces.length > 1)
      .sort((a, b) => b.bytes - a.bytes);
    this.bars = this.stitched.slice(0, 24);
    this.hot = this.bars[0] ?? null;
    this.tell();
    this.layOut();
  }

  tell() {
    const {map, stitched, blocks} = this, sentences = [];
    if (!map.chunk) {
      byId("map-words").textContent = "This log has version 1, which does not record where memory "
        + "is mapped. Logs of this version of Thimble do.";
      return;
    }
    const away = blocks.filter(block => block.away).length;
    const mapped = map.slots.size * map.chunk;
    sentences.push(size(mapped) + " in " + count(map.slots.size) + " slots of " + size(map.chunk)
      + " are mapped at home; " + count(blocks.length) + " blocks use them.");
    const pieces = stitched.reduce((sum, block) => sum + block.pieces.length, 0);
    sentences.push(stitched.length ? count(stitched.length) + " of the blocks are stitched, from "
      + count(pieces) + " pieces." : "No block is stitched at this moment.");
    if (away)
      sentences.push(count(away) + " blocks are on the host; their addresses have no memory.");
    byId("map-words").textContent = sentences.join(" ");
  }

  layOut() {
    const {map} = this;
    const width = Math.max(this.canvas.parentElement.clientWidth - this.left - 8, 100);
    const slots = Math.max(Math.ceil(map.end / (map.chunk || 1)), 1);
    // Choose few enough rows to see all at once, with slots as wide as possible.
    const least = Math.min(8, Math.ceil(slots / 8));
    const wanted = clamp(Math.ceil(slots / Math.floor(width / 9)), least, 28);
    this.perRow = Math.ceil(slots / wanted) * (map.chunk || 1);
    this.rows = map.chunk ? Math.ceil(map.end / this.perRow) : 0;
    const bars = this.bars.length ? this.bars.length * (this.row + this.gap) + 34 : 0;
    this.canvas.style.height = this.rows * (this.row + this.gap) + bars + 8 + "px";
    this.redraw();
  }

  // Rectangles of [from, from + bytes) at home: one per row it is in.
  rectangles(from, bytes) {
    const found = [], scale = (this.canvas.clientWidth - this.left - 8) / this.perRow;
    for (let at = from; at < from + bytes;) {
      const row = Math.floor(at / this.perRow);
      const end = Math.min(from + bytes, (row + 1) * this.perRow);
      found.push({x: this.left + (at - row * this.perRow) * scale, y: row * (this.row + this.gap),
        width: (end - at) * scale, height: this.row});
      at = end;
    }
    return found;
  }
  barRectangles(index) {
    const most = this.bars[0].bytes, block = this.bars[index];
    const scale = (this.canvas.clientWidth - this.left - 8) / most;
    const y = this.rows * (this.row + this.gap) + 34 + index * (this.row + this.gap);
    let x = this.left;
    return block.pieces.map(piece => {
      const rectangle = {x, y, width: piece.bytes * scale, height: this.row};
      x += rectangle.width;
      return rectangle;
    });
  }

  draw(context, width) {
    context.clearRect(0, 0, width, this.canvas.clientHeight);
    if (!this.map?.chunk) return;
    this.drawSlots(context);
    for (const block of this.blocks) this.drawBlock(context, block);
    this.drawBorders(context);
    this.drawBars(context);
    if (this.hot) this.drawHot(context);
  }

  drawSlots(context) {
    const {map} = this;
    context.fillStyle = theme.color("quiet");
    context.textAlign = "right";
    for (let row = 0; row < this.rows; ++row)
      context.fillText(row ? size(row * this.perRow) : "0", this.left - 8,
        row * (this.row + this.gap) + this.row / 2);
    context.textAlign = "left";
    context.strokeStyle = theme.color("line");
    for (const r of this.rectangles(0, map.end))
      context.strokeRect(r.x, r.y + .5, r.width, r.height - 1);
    context.fillStyle = theme.color("free");
    for (const slot of map.slots.keys())
      for (const r of this.rectangles(slot * map.chunk, map.chunk))
        context.fillRect(r.x, r.y, r.width + .5, r.height);
  }

  drawBlock(context, {block, pieces, away}) {
    context.fillStyle = this.colorOf(block);
    context.globalAlpha = away ? .3 : 1;
    for (const piece of pieces)
      for (const r of this.rectangles(piece.from, piece.bytes))
        context.fillRect(r.x, r.y + 1, Math.max(r.width - .4, .4), r.height - 2);
    if (pieces.length > 1) {  // hatched
      context.fillStyle = "#ffffffa0";
      for (const piece of pieces)
        for (const r of this.rectangles(piece.from, piece.bytes))
          context.fillRect(r.x, r.y + 1, Math.max(r.width - .4, .4), 3);
    }
    context.globalAlpha = 1;
  }

  // Marks where chunks begin, if there is room.
  drawBorders(context) {
    const {map} = this;
    if ((this.canvas.clientWidth - this.left) / (this.perRow / map.chunk) < 3) return;
    context.fillStyle = theme.color("back");
    for (const [slot, begins] of map.slots)
      if (begins) {
        const [r] = this.rectangles(slot * map.chunk, 1);
        context.fillRect(r.x - .4, r.y, .8, r.height);
      }
  }

  drawBars(context) {
    if (!this.bars.length) return;
    context.fillStyle = theme.color("quiet");
    context.fillText("Stitched blocks, piece by piece" + (this.stitched.length > this.bars.length
      ? ", the largest " + this.bars.length : ""), this.left,
      this.rows * (this.row + this.gap) + 20);
    this.bars.forEach((block, index) => {
      const rectangles = this.barRectangles(index), color = this.colorOf(block.block);
      for (const r of rectangles) {
        context.fillStyle = color;
        context.fillRect(r.x, r.y, Math.max(r.width - 1.2, .6), r.height);
      }
      context.fillStyle = theme.color("quiet");
      context.textAlign = "right";
      context.fillText(size(block.bytes), this.left - 8, rectangles[0].y + this.row / 2);
      context.textAlign = "left";
    });
  }

  drawHot(context) {
    const {pieces} = this.hot, bar = this.bars.indexOf(this.hot);
    const ends = bar < 0 ? [] : this.barRectangles(bar);
    context.strokeStyle = theme.color("accent");
    pieces.forEach((piece, i) => {
      const places = this.rectangles(piece.from, piece.bytes);
      context.lineWidth = 2;
      for (const r of places) context.strokeRect(r.x, r.y, Math.max(r.width, 1), r.height);
      if (!ends[i]) return;
      const [from] = places, to = ends[i];
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(from.x + from.width / 2, from.y + from.height);
      context.bezierCurveTo(from.x + from.width / 2, (from.y + to.y) / 2 + 20,
        to.x + to.width / 2, (from.y + to.y) / 2 - 20, to.x + to.width / 2, to.y);
      context.stroke();
      context.strokeRect(to.x, to.y, Math.max(to.width - 1, 1), to.height);
    });
  }

  blockAt(event) {
    const isIn = r => event.offsetX >= r.x && event.offsetX < r.x + Math.max(r.width, 1)
      && event.offsetY >= r.y && event.offsetY < r.y + r.height;
    const bar = this.bars.findIndex((_, index) => this.barRectangles(index).some(isIn));
    if (bar >= 0) return this.bars[bar];
    return this.blocks.find(({pieces}) => pieces.some(({from, bytes}) =>
      this.rectangles(from, bytes).some(isIn))) ?? null;
  }

  hover(event) {
    if (!this.map?.chunk) return;
    const found = this.blockAt(event);
    this.heat(found);
    if (found) return tip.show(event, this.describe(found));
    const row = Math.floor(event.offsetY / (this.row + this.gap));
    const offset = (event.offsetX - this.left) / (this.canvas.clientWidth - this.left - 8)
      * this.perRow + row * this.perRow;
    const isBetween = event.offsetY % (this.row + this.gap) >= this.row;
    if (isBetween || event.offsetX < this.left || row >= this.rows || offset >= this.map.end)
      return tip.hide();
    const mapped = this.map.slots.has(Math.floor(offset / this.map.chunk));
    tip.show(event, (mapped ? "free" : "no memory here") + ", at " + size(Math.floor(offset)));
  }

  describe({block, bytes, address, pieces, away}) {
    const {history} = this, lines = [history.groups[history.group[block]].label];
    lines.push(size(bytes) + " (" + count(bytes) + ") at 0x" + address.toString(16));
    lines.push("since " + duration(history.timeOf(history.born[block])) + ", "
      + LIFETIMES[history.lifetimeOf(block)]);
    if (away) lines.push("its bytes are on the host");
    if (pieces.length > 1) {
      lines.push("stitched from " + count(pieces.length) + " pieces:");
      for (const piece of pieces.slice(0, 8))
        lines.push("  " + size(piece.bytes) + " from " + size(piece.from) + " at home");
      if (pieces.length > 8) lines.push("  and " + count(pieces.length - 8) + " more");
    }
    return lines.join("\n");
  }

  heat(block) {
    if (block === this.hot) return;
    this.hot = block;
    this.redraw();
  }
  // The up and down keys select stitched blocks.
  key(event) {
    const by = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (!by || !this.bars.length) return;
    event.preventDefault();
    this.heat(this.bars[clamp(this.bars.indexOf(this.hot) + by, 0, this.bars.length - 1)]);
  }
}

// The blocks whose bytes are elsewhere.
function onHostAt(history, instant) {
  const {marks} = history, away = new Set();
  for (const i of history.moves) {
    if (marks.at[i] > instant) break;
    if (marks.kind[i] === KIND.evict) away.add(marks.address[i] - 1);
    else away.delete(marks.address[i] - 1);
  }
  return away;
}
