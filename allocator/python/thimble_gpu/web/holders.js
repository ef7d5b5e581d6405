// Shows who holds the memory at the chosen instant: a sortable table, and an icicle by scopes.
"use strict";

class HoldersTable {
  constructor(history) {
    this.history = history;
    this.body = byId("holders");
    this.order = {field: "bytes", down: true};
    this.all = false;
    for (const button of document.querySelectorAll("#holder-table th button"))
      button.onclick = () => this.sort(button);
    byId("more-holders").onclick = () => { this.all = !this.all; this.show(this.instant); };
  }

  sort(button) {
    const field = button.dataset.field;
    const down = this.order.field === field ? !this.order.down : field !== "label";
    this.order = {field, down};
    for (const other of document.querySelectorAll("#holder-table th"))
      other.removeAttribute("aria-sort");
    button.parentElement.setAttribute("aria-sort", down ? "descending" : "ascending");
    this.show(this.instant);
  }

  show(instant) {
    this.instant = instant;
    const total = this.history.total[instant] || 1, {field, down} = this.order;
    const rows = this.history.holders(instant).sort((a, b) =>
      (field === "label" ? a.label.localeCompare(b.label) : a[field] - b[field]) * (down ? -1 : 1));
    const shown = this.all ? rows : rows.slice(0, 12);
    this.body.replaceChildren(...shown.map(row => {
      const bar = element("div", {className: "bar"});
      bar.style.width = 100 * row.bytes / total + "%";
      return element("tr", {}, element("td", {title: row.label}, short(row.label, 44)),
        element("td", {title: count(row.bytes) + " bytes"}, size(row.bytes)),
        element("td", {}, bar, percent(row.bytes / total)), element("td", {}, count(row.blocks)),
        element("td", {}, duration(row.since)));
    }));
    const more = byId("more-holders");
    more.hidden = rows.length <= 12;
    more.textContent = this.all ? "The first 12" : "All " + count(rows.length);
  }
}

// Draws scopes, the parts of names between slashes; the widest come first.
class Icicle {
  constructor(history) {
    this.history = history;
    this.canvas = byId("icicle");
    this.row = 21;
    this.boxes = [];
    this.zoomed = "";
    this.redraw = drawn(this.canvas, (...where) => this.draw(...where));
    this.canvas.addEventListener("pointermove", event => this.hover(event));
    this.canvas.addEventListener("pointerleave", tip.hide);
    this.canvas.addEventListener("click", event => this.zoom(this.boxAt(event)));
    this.canvas.addEventListener("keydown", event => {
      if (event.key === "Escape" || event.key === "Backspace") this.zoom(null);
    });
  }

  show(instant) {
    this.root = new ScopeTree(this.history, instant, part => part).root;
    this.zoom(null);
  }

  // Zooms to a box; without one, shows everything.
  zoom(box) {
    this.from = box?.node ?? this.root;
    const depth = node => 1 + Math.max(0, ...[...node.children.values()].map(depth));
    this.canvas.style.height = Math.min(depth(this.from), 16) * this.row + 4 + "px";
    this.redraw();
  }

  draw(context, width) {
    context.clearRect(0, 0, width, this.canvas.clientHeight);
    this.boxes = [];
    if (this.from) this.place(this.from, 0, 0, width);
    this.boxes.forEach(({node, x, y, width}) => {
      context.fillStyle = node === this.root ? theme.color("card") : colorOfName(node.name);
      context.fillRect(x, y, Math.max(width - 1, .5), this.row - 1);
      if (width < 24) return;
      context.fillStyle = node === this.root ? theme.color("ink") : "#10151b";
      context.fillText(fitted(context, node.name + "  " + size(node.bytes), width - 10), x + 5,
        y + this.row / 2);
    });
  }
  place(node, x, depth, width) {
    if (width < .3 || depth >= 16) return;
    this.boxes.push({node, x, y: depth * this.row, width});
    const children = [...node.children.values()].sort((a, b) => b.bytes - a.bytes);
    for (const child of children) {
      const part = width * child.bytes / node.bytes;
      this.place(child, x, depth + 1, part);
      x += part;
    }
  }

  boxAt(event) {
    return this.boxes.find(({x, y, width}) => event.offsetX >= x && event.offsetX < x + width
      && event.offsetY >= y && event.offsetY < y + this.row);
  }
  hover(event) {
    const box = this.boxAt(event);
    if (!box) return tip.hide();
    const {node} = box;
    tip.show(event, (node.path || "all") + "\n" + size(node.bytes) + " ("
      + percent(node.bytes / this.root.bytes) + ") in " + count(node.blocks) + " blocks");
  }
}

// The same name has the same colour everywhere.
function colorOfName(name) {
  let hash = 7;
  for (const letter of name.replace(/_?\d+$/, "")) hash = hash * 31 + letter.codePointAt(0) | 0;
  return `hsl(${((hash >>> 0) % 360)} 48% 68%)`;
}
