'use strict';
// Where in the user's own text a place of an evaluated script is, and how a stack is
// told with it.

const { SourceMap } = require('node:module');

class Positions {
  constructor() {
    this.files = new Map();
  }

  // add knows a cell by its file's name: {code, edits, map, source, cell}, where map is a
  // source map's JSON and source the text that it leads to, if code was made of another.
  // Functions of earlier cells live on, so the last thousand are kept.
  add(file, cell) {
    this.files.delete(file);
    this.files.set(file, cell);
    if (this.files.size > 1000) this.files.delete(this.files.keys().next().value);
  }

  // origin is {line, column} in the text as the user wrote it.
  origin(file, line, column) {
    const known = this.files.get(file);
    if (!known) return { line, column };
    let place = known.edits ? known.edits.origin(line, column) : { line, column };
    if (known.map) {
      if (typeof known.map === 'string') known.map = new SourceMap(JSON.parse(known.map));
      const entry = known.map.findEntry(place.line - 1, place.column - 1);
      if (entry && entry.originalLine !== undefined) place = { line: entry.originalLine + 1, column: entry.originalColumn + 1 };
    }
    return place;
  }

  // cell is the one that a file is of.
  cell(file) {
    const known = this.files.get(file);
    return known && known.cell;
  }

  // text is the cell's own source.
  text(file) {
    const known = this.files.get(file);
    return known && (known.source || known.code);
  }

  // frame is the text of a CallSite, or undefined for one of the kernel's own.
  frame(site) {
    const file = site.getFileName() || site.getScriptNameOrSourceURL();
    if (file && file.startsWith('cellard:')) return undefined;
    if (!this.files.has(file)) return String(site);
    const { line, column } = this.origin(file, site.getLineNumber(), site.getColumnNumber());
    const text = String(site);
    return text.replace(`${file}:${site.getLineNumber()}:${site.getColumnNumber()}`, `${file}:${line}:${column}`);
  }

  // prepare is an Error.prepareStackTrace.
  prepare(error, sites) {
    let head;
    try {
      head = Reflect.apply(errorToString, error, []);
    } catch {
      head = 'Error';
    }
    let text = head;
    for (const site of sites) {
      let frame;
      try {
        frame = this.frame(site);
      } catch {
        continue;
      }
      if (frame !== undefined) text += `\n    at ${frame}`;
    }
    return text;
  }
}

const errorToString = Error.prototype.toString;

module.exports = { Positions };
