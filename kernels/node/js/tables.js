'use strict';
// Arrays of objects and Maps as tables: application/vnd.runtime.table+json. Making one
// never fails a cell, runs no getter, and looks at no more than it shows.

const { types, inspect } = require('node:util');
const { Buffer } = require('node:buffer');
const { heavy } = require('./heavy.js');
const { apply, getOwnPropertyDescriptor: propertyOf, ownKeys, getPrototypeOf } = Reflect;

const TABLE = 'application/vnd.runtime.table+json';
const ROWS = Number(process.env.CELLARD_TABLE_ROWS) || 1000;
const COLUMNS = Number(process.env.CELLARD_TABLE_COLUMNS) || 100;
// What one text, and all of a table, may hold in UTF-16 units; how many elements of a
// list, how deep; how many rows as HTML; how long making it may take, in milliseconds.
const TEXT = 32 * 1024;
const TOTAL = 8 * 1024 * 1024;
const ITEMS = 100;
const HTML_ROWS = 60;
const DEPTH = 4;
const WAIT = 1000;

const mapEntries = Map.prototype.entries;
const mapSize = Object.getOwnPropertyDescriptor(Map.prototype, 'size').get;
const setValues = Set.prototype.values;
const isoDate = Date.prototype.toISOString;
const dateTime = Date.prototype.getTime;

// table is the table of a value, or undefined for one that is none.
function table(value) {
  try {
    if (types.isProxy(value)) return undefined;
    if (Array.isArray(value)) return ofArray(value);
    if (types.isMap(value)) return ofMap(value);
  } catch {
    // The text is there all the same.
  }
  return undefined;
}

function ofArray(array) {
  const count = array.length;
  if (count === 0) return undefined;
  const shown = Math.min(count, ROWS);
  const rows = [];
  for (let i = 0; i < shown; i++) {
    const row = own(array, i);
    if (!isRecord(row)) return undefined;
    rows.push(row);
  }
  return make(rows, count, undefined);
}

// A Map of records has its keys as the index; another has two columns.
function ofMap(map) {
  const count = apply(mapSize, map, []);
  if (count === 0) return undefined;
  const keys = [];
  const values = [];
  const entries = apply(mapEntries, map, []);
  for (let next = entries.next(); !next.done && keys.length < ROWS; next = entries.next()) {
    keys.push(next.value[0]);
    values.push(next.value[1]);
  }
  if (values.every(isRecord)) return make(values, count, keys);
  const rows = keys.map((key, i) => ({ __proto__: null, key, value: values[i] }));
  return make(rows, count, undefined);
}

// isRecord: an object that is made of its properties, no array, date or such.
function isRecord(value) {
  if (value === null || typeof value !== 'object' || types.isProxy(value) || Array.isArray(value)) return false;
  if (ArrayBuffer.isView(value) || types.isDate(value) || types.isMap(value) || types.isSet(value) || types.isRegExp(value)) return false;
  if (types.isPromise(value) || types.isNativeError(value) || types.isBoxedPrimitive(value) || types.isAnyArrayBuffer(value)) return false;
  return true;
}

// own is a property's value, undefined for a getter.
function own(object, key) {
  const property = propertyOf(object, key);
  return property && property.value;
}

function make(rows, count, index) {
  const budget = new Budget();
  const names = new Set();
  let wide = false;
  for (const row of rows) {
    // A first look at one row must be cheap too.
    let n = 0;
    for (const key in row) {
      if (++n > 10 * COLUMNS) break;
      const property = propertyOf(row, key);
      if (!property || !('value' in property) || typeof property.value === 'function') continue;
      if (names.has(key)) continue;
      if (names.size === COLUMNS) {
        wide = true;
        break;
      }
      names.add(key);
    }
    if (budget.late()) break;
  }
  if (names.size === 0) return undefined;
  const columns = [...names];
  const kinds = columns.map(() => new Set());
  const out = [];
  const labels = index && [];
  for (let i = 0; i < rows.length; i++) {
    const row = columns.map((name, c) => {
      const value = own(rows[i], name);
      const kind = kindOf(value);
      if (kind) kinds[c].add(kind);
      return budget.cell(value, 0);
    });
    const label = index && budget.cell(index[i], 0);
    if (budget.spent()) break;
    out.push(row);
    if (index) labels.push(label);
  }
  return {
    columns: columns.map((name) => budget.text(name)),
    types: kinds.map(typeOf),
    rows: out,
    index: labels || null,
    rowCount: count,
    truncated: out.length < count || wide || budget.cut,
  };
}

function typeOf(kinds) {
  if (kinds.size === 2 && kinds.has('integer') && kinds.has('number')) return 'number';
  return kinds.size === 1 ? [...kinds][0] : 'any';
}

// kindOf is the type of one value, undefined for a missing one.
function kindOf(value) {
  switch (typeof value) {
    case 'undefined':
      return undefined;
    case 'number':
      if (value !== value) return undefined;
      return Number.isInteger(value) ? 'integer' : 'number';
    case 'bigint':
      return 'integer';
    case 'boolean':
      return 'boolean';
    case 'string':
      return 'string';
    case 'object':
      if (value === null) return undefined;
      return types.isDate(value) ? 'datetime' : 'any';
    default:
      return 'any';
  }
}

// Budget makes JSON of values, within bounds.
class Budget {
  constructor() {
    this.cut = false;
    this.left = TOTAL;
    this.until = Date.now() + WAIT;
    this.n = 0;
  }

  late() {
    return (++this.n & 15) === 0 && Date.now() > this.until;
  }

  spent() {
    return this.left < 0 || this.late();
  }

  text(text) {
    if (text.length > TEXT) {
      this.cut = true;
      text = text.slice(0, TEXT - 1) + '…';
    }
    this.left -= text.length;
    return text;
  }

  cell(value, depth) {
    this.left--;
    switch (typeof value) {
      case 'number':
        if (!Number.isFinite(value)) return null;
        return Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21 && Math.abs(value) !== 2 ** 53 ? String(value) : value;
      case 'bigint':
        return value >= -(2n ** 53n) && value <= 2n ** 53n ? Number(value) : this.text(heavy(value) ? '…' : String(value));
      case 'string':
        return this.text(value);
      case 'boolean':
        return value;
      case 'undefined':
        return null;
      case 'object':
        return value === null ? null : this.object(value, depth);
      default:
        return this.text(inspect(value, { colors: false, depth: 0 }));
    }
  }

  object(value, depth) {
    if (types.isProxy(value)) return '[Proxy]';
    if (types.isDate(value)) return Number.isNaN(apply(dateTime, value, [])) ? null : apply(isoDate, value, []);
    if (ArrayBuffer.isView(value) && !types.isUint8Array(value)) return this.list(value, value.length, depth, (i) => value[i]);
    if (types.isUint8Array(value)) {
      if (value.length > TEXT) this.cut = true;
      return this.text(Buffer.from(value.subarray(0, TEXT / 2)).toString('base64'));
    }
    if (Array.isArray(value)) return this.list(value, value.length, depth, (i) => own(value, i));
    if (types.isSet(value)) {
      const items = [];
      const values = apply(setValues, value, []);
      for (let next = values.next(); !next.done && items.length <= ITEMS; next = values.next()) items.push(next.value);
      return this.list(items, items.length, depth, (i) => items[i]);
    }
    if (!isRecord(value) || depth >= DEPTH) return depth >= DEPTH ? '…' : this.text(shown(value));
    const out = { __proto__: null };
    let n = 0;
    for (const key in value) {
      if (n++ === ITEMS || this.left < 0) {
        this.cut = true;
        break;
      }
      const item = own(value, key);
      if (typeof item !== 'function' && item !== undefined) out[this.text(key)] = this.cell(item, depth + 1);
    }
    return out;
  }

  list(list, length, depth, at) {
    if (depth >= DEPTH) return '…';
    if (length > ITEMS) this.cut = true;
    const out = [];
    for (let i = 0; i < Math.min(length, ITEMS) && this.left >= 0; i++) out.push(this.cell(at(i), depth + 1));
    return out;
  }
}

function shown(value) {
  return heavy(value) ? '…' : inspect(value, { colors: false, depth: 0, customInspect: false, maxStringLength: 1000 });
}

// html is a table as HTML, its first rows.
function html({ columns, rows, index, rowCount }) {
  const shown = rows.slice(0, HTML_ROWS);
  const body = shown.map((row, i) => `<tr>${index ? cellOf('th', index[i]) : ''}${row.map((value) => cellOf('td', value)).join('')}</tr>`);
  const more = rowCount > shown.length ? `<p>${rowCount} rows</p>` : '';
  return `<table><thead><tr>${index ? '<th></th>' : ''}${columns.map((name) => cellOf('th', name)).join('')}</tr></thead><tbody>${body.join('')}</tbody></table>${more}`;
}

function cellOf(tag, value) {
  const text = value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
  return `<${tag}>${text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')}</${tag}>`;
}

module.exports = { table, html, TABLE };
