// The history of one device's memory, and its state at any instant.
//
// An *instant* is the number of allocations and frees that have happened, from 0 to ops. Blocks and
// groups have the same numbers as in the columns.
"use strict";

const KIND = {};  // numbers of the kinds of marks, from the report

class History {
  constructor(report, columns) {
    this.report = report;
    Object.assign(KIND, report.kinds);
    this.groups = report.groups.map(group => ({...group, label: labelOf(group)}));
    this.time = summedUp(columns["op.time"]);
    this.ops = this.time.length;
    this.readBlocks(columns);
    this.readMarks(columns);
    this.end = Math.max(this.ops ? this.time[this.ops - 1] : 0, this.marks.time.at(-1) ?? 0, 1);
    this.extremes = new Extremes(this.total);
    this.peak = this.extremes.highest(0, this.ops);
  }

  readBlocks(columns) {
    const address = columns["block.address"];
    for (let i = 0; i < address.length; ++i) address[i] = unfolded(address[i]);
    this.blocks = address.length;
    this.address = summedUp(address);
    this.bytes = columns["block.bytes"];
    this.group = Int32Array.from(columns["block.group"]);
    this.born = new Int32Array(this.blocks);  // the instant of its allocation
    this.died = new Int32Array(this.blocks).fill(this.ops + 1);
    this.blockOf = new Int32Array(this.ops);  // block of an op; ~block for a free
    this.total = new Float64Array(this.ops + 1);  // bytes in use at every instant
    const what = columns["op.what"];
    for (let i = 0, next = 0; i < this.ops; ++i) {
      const block = what[i] ? next - what[i] : next++;
      this.blockOf[i] = what[i] ? ~block : block;
      (what[i] ? this.died : this.born)[block] = i + 1;
      this.total[i + 1] = this.total[i] + (what[i] ? -this.bytes[block] : this.bytes[block]);
    }
  }

  readMarks(columns) {
    const mark = name => columns["mark." + name];
    this.marks = {kind: mark("kind"), at: summedUp(mark("op")), time: summedUp(mark("time")),
      address: mark("address"), bytes: mark("bytes"), stream: mark("stream"), key: mark("key")};
    this.steps = this.largeSteps(this.marksOf(KIND.step));
    this.reserved = this.seriesOf(KIND.memory, "bytes");
    this.limit = this.seriesOf(KIND.limit, "bytes");
    this.onHost = this.seriesOf(KIND.swap, "address");
    this.moves = this.marksOf(KIND.evict, KIND.fetch);
  }

  // TensorFlow counts every op that Python calls by itself as a step. This keeps the large steps,
  // which are those that people mean; the list may be empty.
  largeSteps(steps) {
    const blocksAt = mark => upperBound(this.born, this.marks.at[mark] ?? this.ops);
    const sizes = steps.map((mark, i) => blocksAt(steps[i + 1]) - blocksAt(mark));
    const most = sizes.reduce((a, b) => Math.max(a, b), 0);
    return most < 32 ? [] : steps.filter((_, i) => sizes[i] >= most / 8);
  }

  // Numbers of all marks of the given kinds, in order.
  marksOf(...kinds) {
    const found = [];
    for (let i = 0; i < this.marks.kind.length; ++i)
      if (kinds.includes(this.marks.kind[i])) found.push(i);
    return found;
  }
  seriesOf(kind, field) {
    const marks = this.marksOf(kind);
    return new Series(marks.map(i => this.marks.at[i]), marks.map(i => this.marks.time[i]),
      marks.map(i => this.marks[field][i]));
  }

  timeOf(instant) { return instant ? this.time[instant - 1] : 0; }
  // The instant at a time, after everything that happened until then.
  instantAt(time) { return upperBound(this.time, time); }
  // The number of the step, from 1; 0 before the first.
  stepAt(instant) { return upperBound(this.steps, instant, i => this.marks.at[i]); }

  liveBlocks(instant) {
    const found = [];
    const last = this.blocks;
    for (let block = 0; block < last && this.born[block] <= instant; ++block)
      if (instant < this.died[block]) found.push(block);
    return found;
  }

  // Bytes, blocks and the oldest block of every group that holds memory, most bytes first.
  holders(instant) {
    const found = new Map();
    for (const block of this.liveBlocks(instant)) {
      const group = this.group[block];
      let holder = found.get(group);
      if (!holder) {
        holder = {group, label: this.groups[group].label, bytes: 0, blocks: 0, since: Infinity};
        found.set(group, holder);
      }
      holder.bytes += this.bytes[block];
      holder.blocks += 1;
      holder.since = Math.min(holder.since, this.timeOf(this.born[block]));
    }
    return [...found.values()].sort((a, b) => b.bytes - a.bytes);
  }

  // The lifetime of a block, as an index into LIFETIMES.
  lifetimeOf(block) {
    if (this.died[block] > this.ops) return 0;
    return this.steps.length > 1
      && this.stepAt(this.died[block]) - this.stepAt(this.born[block]) > 1 ? 1 : 2;
  }
}
const LIFETIMES = ["stays until the end", "outlives a step", "comes and goes within a step"];

// TensorFlow puts this before the names of ops in nested functions.
const WRAPPERS = /^((Stateful)?PartitionedCall(_\d+)?\/)+/;
const scopesOf = group => group.kind === "name"
  ? group.name.replace(WRAPPERS, "").split("/").filter(part => part)
  : ["without a name", group.label];

function labelOf(group) {
  if (group.kind === "name") return scopesOf(group).join("/") || group.name;
  if (group.kind === "key") return "op " + BigInt(group.value).toString(16) + ", name not known";
  if (group.kind === "small") return "small blocks, up to 4 KiB";
  return "blocks of " + size(Number(group.value)) + " without a name";
}

// How many of the sorted numbers are at most `value`.
function upperBound(numbers, value, valueOf = number => number) {
  let low = 0, high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (valueOf(numbers[middle]) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Values over time, each valid until the next one.
class Series {
  constructor(instants, times, values) { Object.assign(this, {instants, times, values}); }
  at(instant) { return this.values[upperBound(this.instants, instant) - 1] ?? 0; }
  most() { return this.values.reduce((most, value) => Math.max(most, value), 0); }
}

// Finds the highest and lowest numbers of any interval without reading all of them.
class Extremes {
  constructor(values) {
    this.values = values;
    this.size = 64;  // numbers summed up by one number of the level above
    const groups = Math.ceil(values.length / this.size);
    this.most = new Int32Array(groups);
    this.least = new Int32Array(groups);
    for (let group = 0; group < groups; ++group) {
      const end = Math.min((group + 1) * this.size, values.length);
      let most = group * this.size, least = most;
      for (let i = most + 1; i < end; ++i) {
        if (values[i] > values[most]) most = i;
        if (values[i] < values[least]) least = i;
      }
      this.most[group] = most;
      this.least[group] = least;
    }
  }
  search(from, until, picks, isBetter) {
    let best = from;
    for (let i = from; i <= until;) {
      const whole = i % this.size === 0 && i + this.size - 1 <= until;
      const candidate = whole ? picks[i / this.size] : i;
      if (isBetter(this.values[candidate], this.values[best])) best = candidate;
      i += whole ? this.size : 1;
    }
    return best;
  }
  // The first index of the highest number in [from, until].
  highest(from, until) { return this.search(from, until, this.most, (a, b) => a > b); }
  lowest(from, until) { return this.search(from, until, this.least, (a, b) => a < b); }
}
