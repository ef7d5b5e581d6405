// The mappings at one instant: chunks at home, and runs of aliases.
"use strict";

class Mappings {
  constructor(history, instant) {
    const {marks} = history;
    this.chunk = 0;  // bytes of a slot
    this.base = 0;   // address of home
    this.end = 0;    // end of everything that was ever mapped, from base
    this.slots = new Map();  // number of a slot to bytes of its chunk if that begins there, else 0
    this.aliases = new Map();  // address of a run to {address, bytes, home}
    for (let i = 0; i < marks.kind.length; ++i) {
      const address = marks.address[i], bytes = marks.bytes[i], key = marks.key[i];
      if (marks.kind[i] === KIND.map) this.end = Math.max(this.end, address - this.base + bytes);
      if (marks.at[i] > instant) continue;
      switch (marks.kind[i]) {
        case KIND.limit:
          [this.base, this.chunk] = [address, key];
          break;
        case KIND.map:
          this.eachSlot(address, bytes, (slot, offset) =>
            this.slots.set(slot, offset % key === 0 ? key : 0));
          break;
        case KIND.unmap:
          this.eachSlot(address, bytes, slot => this.slots.delete(slot));
          break;
        case KIND.alias:
          this.aliases.set(address, {address, bytes, home: key - this.base});
          break;
        case KIND.unalias:
          for (let at = address; at < address + bytes;) {
            const run = this.aliases.get(at);
            if (!run) break;
            this.aliases.delete(at);
            at += run.bytes;
          }
      }
    }
    this.runs = [...this.aliases.values()].sort((a, b) => a.address - b.address);
  }

  eachSlot(address, bytes, visit) {
    const first = (address - this.base) / this.chunk;
    for (let i = 0; i < bytes / this.chunk; ++i) visit(first + i, i * this.chunk);
  }

  // The pieces of a block as {from, bytes} at home, in the order of its bytes; empty if the log
  // does not record them.
  piecesOf(address, bytes) {
    const offset = address - this.base;
    if (offset >= 0 && offset < Math.max(this.end, 1)) return [{from: offset, bytes}];
    const pieces = [];
    let i = upperBound(this.runs, address, run => run.address) - 1;
    for (let at = address; i >= 0 && i < this.runs.length && at < address + bytes; ++i) {
      const run = this.runs[i], skipped = at - run.address;
      if (skipped < 0 || skipped >= run.bytes) break;
      const part = Math.min(run.bytes - skipped, address + bytes - at);
      const last = pieces.at(-1), from = run.home + skipped;
      if (last && last.from + last.bytes === from) last.bytes += part;
      else pieces.push({from, bytes: part});
      at += part;
    }
    return pieces;
  }
}
