// Draws what each GPU and link does, and when, in a schedule of `thimble harmony`.
"use strict";

const GANTT = {left: 118, right: 8, top: 24, row: 20, gap: 8};
// An action of the schedule is a list. This names the indices of its parts.
const ACTION = {gpu: 0, stream: 1, kind: 2, task: 3, first: 4, last: 5, from: 6, until: 7, bytes: 8,
  start: 9, end: 10};
const COLORS = {"forward": "#3f9d6b", "recompute": "#c9a227", "backward": "#3b7dd8",
  "weights in": "#8c6bd1", "gather": "#b48bc9", "gradient out": "#d9593d", "reduce": "#d98880",
  "update": "#7f8c8d", "stash in": "#2a9d9d", "stash out": "#1d7a8c", "activations in": "#e08a1e",
  "activations out": "#b8651b", "receive": "#5f7fa3", "send": "#4fb3d9", "delete": "#6e7681",
  "boundary in": "#998d5c", "boundary out": "#7d7347", "data in": "#8b949e", "message": "#aab2bd"};

class Gantt {
  constructor(schedule) {
    this.schedule = schedule;
    this.canvas = byId("chart");
    this.layOut();
    this.view = new View(schedule.plan.seconds, schedule.plan.seconds / 1e5);
    this.redraw = drawn(this.canvas, (...where) => this.draw(...where));
    this.view.attach(this.canvas, GANTT.left, GANTT.right, this.redraw);
    this.canvas.addEventListener("pointermove", event => this.hover(event));
    byId("all").onclick = () => this.view.all();
    byId("legend").replaceChildren(...this.legend());
  }

  // A row for every stream that is used.
  layOut() {
    const {steps: actions, streams, plan} = this.schedule;
    const used = new Set(actions.map(action => action[ACTION.gpu] + "," + action[ACTION.stream]));
    this.rows = [];
    let y = GANTT.top;
    for (let gpu = 0; gpu < plan.gpus; ++gpu) {
      if (gpu) y += GANTT.gap;
      streams.forEach((name, stream) => {
        if (!used.has(gpu + "," + stream)) return;
        const own = actions.filter(action => action[ACTION.gpu] === gpu
          && action[ACTION.stream] === stream);
        this.rows.push({label: "GPU " + gpu + "  " + name, y, actions: own});
        y += GANTT.row;
      });
    }
    this.canvas.style.height = y + 8 + "px";
  }

  kindOf(action) { return this.schedule.kinds[action[ACTION.kind]]; }
  width() { return Math.max(this.canvas.clientWidth - GANTT.left - GANTT.right, 1); }
  xOf(time) {
    return GANTT.left + (time - this.view.from) / (this.view.until - this.view.from) * this.width();
  }

  draw(context, width, height) {
    context.clearRect(0, 0, width, height);
    for (const time of ticks(this.view.from, this.view.until, width / 130)) {
      context.fillStyle = theme.color("line");
      context.fillRect(this.xOf(time), GANTT.top - 4, 1, height);
      context.fillStyle = theme.color("quiet");
      context.fillText(+time.toFixed(6) + " s", this.xOf(time) + 3, 10);
    }
    for (const {label, y} of this.rows) {
      context.fillStyle = theme.color("ink");
      context.fillText(label, 4, y + GANTT.row / 2);
      context.fillStyle = theme.color("line");
      context.fillRect(GANTT.left, y + GANTT.row - 1, this.width(), 1);
    }
    context.save();
    context.beginPath();
    context.rect(GANTT.left, 0, this.width(), height);
    context.clip();
    for (const {y, actions} of this.rows) {
      for (const action of actions) this.drawAction(context, action, y);
    }
    context.restore();
  }
  drawAction(context, action, y) {
    if (action[ACTION.end] < this.view.from || action[ACTION.start] > this.view.until) return;
    const x = this.xOf(action[ACTION.start]);
    context.fillStyle = COLORS[this.kindOf(action)] ?? REST;
    context.fillRect(x, y + 1, Math.max(.7, this.xOf(action[ACTION.end]) - x - .3), GANTT.row - 3);
  }

  actionAt(event) {
    const {from, until} = this.view, time = from + (event.offsetX - GANTT.left) / this.width()
      * (until - from), slack = 2 * (until - from) / this.width();
    const row = this.rows.find(({y}) => event.offsetY >= y && event.offsetY < y + GANTT.row);
    return row?.actions.find(action => time >= action[ACTION.start] - slack
      && time <= action[ACTION.end] + slack);
  }
  hover(event) {
    const action = this.actionAt(event);
    if (!action || event.buttons) return tip.hide();
    const lines = [this.kindOf(action) + ", task " + action[ACTION.task],
      "layers " + action[ACTION.first] + " to " + action[ACTION.last],
      "samples " + action[ACTION.from] + " to " + (action[ACTION.until] - 1)];
    if (action[ACTION.bytes]) lines.push(size(action[ACTION.bytes]));
    lines.push(action[ACTION.start].toFixed(4) + " to " + action[ACTION.end].toFixed(4) + " s ("
      + ((action[ACTION.end] - action[ACTION.start]) * 1000).toFixed(2) + " ms)");
    tip.show(event, lines.join("\n"));
  }

  legend() {
    return [...new Set(this.schedule.steps.map(action => this.kindOf(action)))].map(kind => {
      const box = element("i");
      box.style.background = COLORS[kind] ?? REST;
      return element("span", {}, box, element("b", {}, kind));
    });
  }
}

window.thimble = {gantt: new Gantt(JSON.parse(byId("schedule").textContent))};
document.documentElement.dataset.ready = "yes";
