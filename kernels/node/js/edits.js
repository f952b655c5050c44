'use strict';
// Edits of a text, and where a place of the new text was in the old one.

class Edits {
  constructor(text) {
    this.text = text;
    this.list = [];
  }

  // insert puts text in at a place. Of several at one place the lower rank comes
  // first: -2 ends there, -1 closes what ends there, 1 opens what begins there; and what
  // was inserted first is the outer one.
  insert(at, text, rank) {
    this.list.push({ start: at, end: at, text, rank, n: this.list.length });
  }

  replace(start, end, text) {
    this.list.push({ start, end, text, rank: 2, n: this.list.length });
  }

  apply() {
    this.list.sort((a, b) => a.start - b.start || a.rank - b.rank || (a.rank < 0 ? b.n - a.n : a.n - b.n));
    let out = '';
    let at = 0;
    // Pieces that were kept: where they begin in the new text and in the old.
    this.kept = [];
    for (const edit of this.list) {
      if (edit.start > at) {
        this.kept.push([out.length, at]);
        out += this.text.slice(at, edit.start);
        at = edit.start;
      }
      out += edit.text;
      at = Math.max(at, edit.end);
    }
    this.kept.push([out.length, at]);
    this.result = out + this.text.slice(at);
    return this.result;
  }

  // origin is the line and column (both from 1) that those of the new text had.
  origin(line, column) {
    const at = offset(this.result, line, column);
    let [from, to] = [0, 0];
    for (let low = 0, high = this.kept.length - 1; low <= high; ) {
      const middle = (low + high) >> 1;
      if (this.kept[middle][0] <= at) {
        [from, to] = this.kept[middle];
        low = middle + 1;
      } else {
        high = middle - 1;
      }
    }
    // What was put in stands where the text before it ends.
    const next = this.kept.find((k) => k[0] > from);
    const old = Math.min(to + Math.max(at - from, 0), next ? next[1] : this.text.length);
    return place(this.text, old);
  }
}

function offset(text, line, column) {
  let at = 0;
  for (let n = 1; n < line; n++) {
    const next = text.indexOf('\n', at);
    if (next < 0) break;
    at = next + 1;
  }
  return Math.min(at + column - 1, text.length);
}

// place is the line and column of an offset.
function place(text, at) {
  let line = 1;
  let start = 0;
  for (let next = text.indexOf('\n'); next >= 0 && next < at; next = text.indexOf('\n', next + 1)) {
    line++;
    start = next + 1;
  }
  return { line, column: at - start + 1 };
}

module.exports = { Edits, place };
