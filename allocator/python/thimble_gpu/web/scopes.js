// Sums up bytes in a tree of scopes, the parts of names between slashes.
"use strict";

// Similar layers of a model differ by a number: block_1, block_2_1.
const withoutNumber = part => part.replace(/(_\d+)+$/, "");

class ScopeTree {
  // Sums up an instant, by default the peak. Merges scopes to which `nameOf` gives the same name.
  constructor(history, instant = history.peak, nameOf = withoutNumber) {
    this.nameOf = nameOf;
    this.root = this.node("all", "");
    for (const {group, bytes, blocks} of history.holders(instant)) {
      const path = this.path(history.groups[group], true);
      for (const node of path) {
        node.bytes += bytes;
        node.blocks += blocks;
      }
    }
  }

  node(name, path) { return {name, path, bytes: 0, blocks: 0, children: new Map()}; }

  // The nodes from the root to a group's node, created if `makes`; without that, as far as they
  // exist.
  path(group, makes = false) {
    const found = [this.root];
    for (const part of scopesOf(group).map(this.nameOf)) {
      const last = found.at(-1);
      if (!last.children.has(part) && makes)
        last.children.set(part, this.node(part, last.path ? last.path + "/" + part : part));
      if (!last.children.has(part)) break;
      found.push(last.children.get(part));
    }
    return found;
  }

  // Chooses at most `most` scopes by repeatedly replacing the largest with its children. Returns a
  // function from a group to the name of its scope.
  cut(most) {
    const chosen = new Set([this.root]), done = new Set();
    const isWorthIt = child => child.bytes >= this.root.bytes * .02;
    for (;;) {
      const next = [...chosen].filter(node => !done.has(node) && node.children.size)
        .sort((a, b) => b.bytes - a.bytes)[0];
      if (!next || chosen.size >= most) break;
      done.add(next);
      const children = [...next.children.values()].sort((a, b) => b.bytes - a.bytes)
        .filter(isWorthIt).slice(0, most - chosen.size);
      children.forEach(child => chosen.add(child));
      const left = next.bytes - children.reduce((sum, child) => sum + child.bytes, 0);
      if (left < this.root.bytes * .001 && next !== this.root) chosen.delete(next);
    }
    return group => {
      const scope = this.path(group).reverse().find(node => chosen.has(node));
      if (!scope || scope === this.root) return "";
      return done.has(scope) ? scope.path + ", others" : scope.path;
    };
  }
}
