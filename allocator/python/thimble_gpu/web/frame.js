// Shared by all pages of Thimble: light and dark themes, the tip under the pointer, formatted sizes
// and times, sharp canvases, and a view of an axis that can be zoomed and moved.
"use strict";

const byId = id => document.getElementById(id);
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// Makes an element with properties and children; texts are children too.
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// --- Words ---------------------------------------------------------------------------------------

// Formats sizes like `thimble stats`, also rounding halves to even.
function size(bytes) {
  for (const [unit, factor] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
    if (bytes >= factor) return (toEven(100 * bytes / factor) / 100).toFixed(2) + " " + unit;
  return bytes + " bytes";
}
function toEven(number) {
  const whole = Math.floor(number), part = number - whole;
  return whole + (part > .5 || part === .5 && whole % 2 ? 1 : 0);
}
// Shortens in the middle, because long names differ at their ends.
const short = (text, most) => text.length <= most ? text
  : text.slice(0, Math.floor(most / 3)) + "…" + text.slice(Math.floor(most / 3) + 1 - most);
const count = number => number.toLocaleString("en-US");
const percent = part => (100 * part).toFixed(1) + " %";
function duration(ns) {
  if (ns >= 1e9) return (ns / 1e9).toFixed(3) + " s";
  if (ns >= 1e6) return (ns / 1e6).toFixed(3) + " ms";
  return (ns / 1e3).toFixed(1) + " µs";
}
// Without trailing zeros.
const roundDuration = ns => duration(ns).replace(/\.?0+ /, " ");

// Returns about `wanted` round numbers between `from` and `until`.
function ticks(from, until, wanted) {
  const rough = (until - from) / wanted;
  if (!(rough > 0)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(each => each >= rough);
  const found = [];
  for (let i = Math.ceil(from / step); i * step <= until; ++i) found.push(i * step);
  return found;
}
// The same for bytes, in powers of two.
function byteTicks(most, wanted) {
  const step = 2 ** Math.ceil(Math.log2(Math.max(most, 1) / wanted));
  return Array.from({length: Math.floor(most / step) + 1}, (_, i) => i * step);
}

// --- Light and dark ------------------------------------------------------------------------------

const theme = {
  listeners: [],
  system: matchMedia("(prefers-color-scheme: dark)"),
  chosen: null,
  printing: false,
  apply() {
    const dark = !theme.printing && (theme.chosen ?? theme.system.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    theme.listeners.forEach(redraw => redraw());
  },
  toggle() {
    theme.chosen = document.documentElement.dataset.theme !== "dark";
    theme.apply();
  },
  color(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name); },
};
byId("theme").onclick = theme.toggle;
theme.system.addEventListener("change", theme.apply);
addEventListener("beforeprint", () => { theme.printing = true; theme.apply(); });
addEventListener("afterprint", () => { theme.printing = false; theme.apply(); });
addEventListener("keydown", event => {
  const isTyping = ["INPUT", "SELECT"].includes(event.target.tagName);
  if (event.key === "d" && !event.ctrlKey && !event.metaKey && !isTyping) theme.toggle();
});
theme.apply();

// Colours of the first layer, the second and so on; the last is for the rest. They can be told
// apart on white and on black, also with colour blindness.
const PALETTE = ["#3b7dd8", "#e08a1e", "#2a9d78", "#c95f9e", "#8c6bd1", "#c9b12a", "#4fb3d9",
  "#d9593d", "#7a9a3a", "#a5784f", "#5f7fa3", "#b48bc9"];
const REST = "#8b949e";

// --- The tip -------------------------------------------------------------------------------------

const tip = {
  show(event, text) {
    const box = byId("tip");
    box.hidden = false;
    box.textContent = text;
    const right = event.clientX + 16 + box.offsetWidth > innerWidth;
    const below = event.clientY + 18 + box.offsetHeight > innerHeight;
    box.style.left = Math.max(4, right ? event.clientX - box.offsetWidth - 12
      : event.clientX + 16) + "px";
    box.style.top = Math.max(4, below ? event.clientY - box.offsetHeight - 12
      : event.clientY + 18) + "px";
  },
  hide() { byId("tip").hidden = true; },
};

// --- Canvases ------------------------------------------------------------------------------------

// Calls draw(context, width, height) now and whenever the size or the colours change. Returns a
// function that draws again.
function drawn(canvas, draw) {
  const redraw = () => {
    const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    draw(context, width, height);
  };
  theme.listeners.push(redraw);
  new ResizeObserver(redraw).observe(canvas);
  return redraw;
}

// Cuts off text that is wider than `width`.
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let keep = Math.floor(text.length * width / context.measureText(text).width);
  while (keep > 0 && context.measureText(text.slice(0, keep) + "…").width > width) --keep;
  return keep > 0 ? text.slice(0, keep) + "…" : "";
}

// --- A view of an axis ---------------------------------------------------------------------------

// The part of an axis that all canvases with that axis show. Wheel, drag and keys change it for all
// of them.
class View {
  constructor(end, smallest) {
    this.end = end;
    this.smallest = smallest;
    this.from = 0;
    this.until = end;
    this.listeners = [];
  }

  set(from, until) {
    const span = clamp(until - from, Math.min(this.smallest, this.end), this.end);
    this.from = clamp(from, 0, this.end - span);
    this.until = this.from + span;
    this.listeners.forEach(redraw => redraw());
  }
  all() { this.set(0, this.end); }
  zoom(factor, at = (this.from + this.until) / 2) {
    this.set(at - (at - this.from) * factor, at + (this.until - at) * factor);
  }
  move(part) {
    const by = part * (this.until - this.from);
    this.set(this.from + by, this.until + by);
  }

  // Switches to another axis and shows all of it.
  reset(end, smallest) {
    this.end = end;
    this.smallest = smallest;
    this.all();
  }

  // Adds a canvas whose axis begins at `left` pixels and ends `right` pixels before the right edge.
  attach(canvas, left, right, redraw, onClick = () => {}) {
    this.listeners.push(redraw);
    canvas.tabIndex = 0;
    canvas.classList.add("zooms");
    const width = () => Math.max(canvas.clientWidth - left - right, 1);
    const at = event => this.from + (event.offsetX - left) / width() * (this.until - this.from);
    let drag = null;
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      if (event.shiftKey) this.move((event.deltaY || event.deltaX) / 600);
      else this.zoom(Math.exp(clamp(event.deltaY, -300, 300) * .002), at(event));
    }, {passive: false});
    canvas.addEventListener("pointerdown", event => {
      drag = {x: event.clientX, from: this.from, until: this.until, moved: false};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      if (!drag) return;
      const by = (drag.x - event.clientX) / width() * (drag.until - drag.from);
      drag.moved ||= Math.abs(drag.x - event.clientX) > 3;
      if (drag.moved) this.set(drag.from + by, drag.until + by);
    });
    canvas.addEventListener("pointerup", event => {
      if (drag && !drag.moved) onClick(event);
      drag = null;
    });
    canvas.addEventListener("pointerleave", tip.hide);
    canvas.addEventListener("dblclick", () => this.all());
    canvas.addEventListener("keydown", event => {
      const keys = {ArrowLeft: () => this.move(-.1), ArrowRight: () => this.move(.1),
        "+": () => this.zoom(.7), "=": () => this.zoom(.7), "-": () => this.zoom(1 / .7),
        Home: () => this.all()};
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
}
