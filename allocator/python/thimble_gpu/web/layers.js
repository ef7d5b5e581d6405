// Stacks the bytes in use by layers.
"use strict";

const MOST_LAYERS = 11;  // besides the rest
const THE_REST = "the rest";

// Bytes of each layer at any instant; every block belongs to a layer.
class Layers {
  constructor(history, layerOf, names) {
    this.history = history;
    this.layerOf = layerOf;
    this.names = names;
    this.spacing = 2048;
    const width = names.length, now = new Float64Array(width);
    this.saved = new Float64Array((Math.floor(history.ops / this.spacing) + 1) * width);
    for (let i = 0; i < history.ops; ++i) {
      this.step(now, i);
      if ((i + 1) % this.spacing === 0) this.saved.set(now, (i + 1) / this.spacing * width);
    }
    this.now = new Float64Array(width);
    this.instant = 0;
  }
  step(bytes, op) {
    const {blockOf, bytes: sizes} = this.history, block = blockOf[op];
    if (block >= 0) bytes[this.layerOf[block]] += sizes[block];
    else bytes[this.layerOf[~block]] -= sizes[~block];
  }
  // The result is valid until the next call. Successive instants are cheap.
  at(instant) {
    const save = Math.floor(instant / this.spacing), width = this.names.length;
    if (instant < this.instant || save * this.spacing > this.instant) {
      this.now.set(this.saved.subarray(save * width, (save + 1) * width));
      this.instant = save * this.spacing;
    }
    while (this.instant < instant) this.step(this.now, this.instant++);
    return this.now;
  }
}

// The ways to stack: by scope, by op, by lifetime.
const STACKS = {
  scope: history => {
    const alike = new ScopeTree(history).cut(MOST_LAYERS);
    if (new Set(history.groups.map(alike)).size > 3) return byGroup(history, alike);
    return byGroup(history, new ScopeTree(history, history.peak, part => part).cut(MOST_LAYERS));
  },
  op: history => byGroup(history, group => group.label),
  lifetime: history => {
    const layerOf = new Uint8Array(history.blocks);
    for (let block = 0; block < history.blocks; ++block)
      layerOf[block] = history.lifetimeOf(block);
    return new Layers(history, layerOf, LIFETIMES);
  },
};

// The largest holders at the peak get layers of their own.
function byGroup(history, nameOf) {
  const names = history.groups.map(nameOf), held = new Map();
  for (const holder of history.holders(history.peak))
    if (names[holder.group])
      held.set(names[holder.group], (held.get(names[holder.group]) ?? 0) + holder.bytes);
  const top = [...held].sort((a, b) => b[1] - a[1]).slice(0, MOST_LAYERS).map(([name]) => name);
  const rest = new Set(names).size > top.length ? [THE_REST] : [];
  const layerOfName = new Map(top.map((name, i) => [name, i]));
  const layerOfGroup = names.map(name => layerOfName.get(name) ?? top.length);
  const layerOf = Uint8Array.from(history.group, group => layerOfGroup[group]);
  return new Layers(history, layerOf, [...top, ...rest]);
}
