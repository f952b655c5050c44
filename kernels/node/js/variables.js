'use strict';
// The session's variables. The inspector refuses code of the cells' that has a side effect
// (a getter without one runs, bounded in time), and what it says of a value is V8's own.

// By themselves: a cell may put others in their place.
const { isBigIntObject, isMap, isMapIterator, isProxy, isSet, isSetIterator, isTypedArray, isWeakMap, isWeakSet } = require('node:util').types;

const MOST = 1000; // variables
const TEXT = 120; // code units of a text
const WAIT = 1000; // milliseconds for all of them
const SIZED = new Set(['array', 'typedarray', 'map', 'set', 'arraybuffer']);
const NAME = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;
const BIG = 1n << 1024n; // larger integers have no text
const BIG_TEXT = '1n << 1024n';
const ITEMS = 100; // of an array, a map or an object that V8 looks at to describe it
const { now } = Date;
const { apply, getOwnPropertyDescriptor, ownKeys } = Reflect;
const bigint = BigInt.prototype.valueOf;
const lengthOf = getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), 'length').get;
const entries = {
  map: [Map.prototype.entries, new Map().entries().next],
  set: [Set.prototype.values, new Set().values().next],
};

// own is an answer of the inspector's by itself: it is an object of the user's realm, whose
// Object.prototype a cell may have added to.
const own = (answer) => ({ __proto__: null, ...answer });

// copied is an array of the user's realm as one of this.
function copied(list) {
  const items = [];
  for (let i = 0; list && i < list.length; i++) items.push(own(list[i]));
  return items;
}

function make(cells) {
  const ask = (method, options) => {
    let found;
    cells.post(method, { silent: true, objectGroup: 'variables', ...options }, (failed, answer) => {
      const { exceptionDetails, result } = own(answer);
      if (!failed && !exceptionDetails && result) found = own(result);
    });
    return found;
  };
  const look = (expression) => ask('Runtime.evaluate', { expression, throwOnSideEffect: true, timeout: 500 });
  const preview = (objectId) => ask('Runtime.callFunctionOn', { functionDeclaration: 'function() { return this }', objectId, generatePreview: true });

  const before = new Set();

  // begin is called before the first cell.
  function begin() {
    for (const name of Reflect.ownKeys(main)) before.add(name);
  }

  function variables() {
    let total = 0;
    let names = []; // no more than the first are looked at, or even sorted: there may be a million
    let last;
    const first = () => {
      names = names.sort().slice(0, MOST);
      if (names.length === MOST) last = names[MOST - 1];
    };
    const add = (name) => {
      if (typeof name !== 'string' || !NAME.test(name) || name.startsWith('$$cellard')) return;
      total++;
      if (last !== undefined && name > last) return;
      names.push(name);
      if (names.length >= 4 * MOST) first();
    };
    for (const name of cells.kinds.keys()) add(name);
    for (const name of Reflect.ownKeys(main)) if (!before.has(name) && !cells.kinds.has(name)) add(name);
    first();
    const until = now() + WAIT;
    const data = names.map((name) => (now() < until ? describe(name) : { name, type: '' }));
    cells.post('Runtime.releaseObjectGroup', { objectGroup: 'variables' }, () => {});
    return { data, total };
  }

  function describe(name) {
    const kind = look(`typeof ${name}`);
    if (!kind) return { name, type: 'unknown' }; // not set yet, or a getter of a cell's
    if (kind.value === 'string') {
      const length = look(`${name}.length`);
      return { name, type: 'string', size: length.value, preview: string(name, length.value) };
    }
    // V8 writes the whole of an integer to describe it, which takes the square of its length.
    if (kind.value === 'bigint' && !look(`-(${BIG_TEXT}) < ${name} && ${name} < (${BIG_TEXT})`).value) return { name, type: 'bigint' };
    let value = look(name);
    if (!value) return { name, type: 'unknown' };
    if (value.type === 'object' && value.objectId && value.subtype !== 'proxy') {
      cells.light = false;
      cells.call('weigh', { objectId: value.objectId });
      if (cells.light) value = preview(value.objectId) || value;
    }
    const size = SIZED.has(value.subtype) ? Number((/\((\d+)\)$/.exec(value.description) || [])[1]) : NaN;
    return { name, type: typeOf(value), size: Number.isNaN(size) ? null : size, preview: cut(text(value)) };
  }

  // string is the beginning of one: the whole may have 100 MB.
  function string(name, length) {
    const found = length <= TEXT ? look(name) : look(`${name}.slice(0, ${TEXT})`);
    return found && typeof found.value === 'string' ? cut(JSON.stringify(found.value)) : '';
  }

  return { begin, variables };
}

// light tells whether V8 can describe a value in a moment: it writes the whole of each
// integer that it meets, and looks into the entries of maps and sets. Nothing of the
// cells' runs here.
function light(value) {
  if (isMapIterator(value) || isSetIterator(value) || isWeakMap(value) || isWeakSet(value)) return false;
  return properties(value) && (!isMap(value) || each(value, entries.map)) && (!isSet(value) || each(value, entries.set));
}

const small = (value) => {
  if (value !== null && typeof value === 'object' && !isProxy(value) && isBigIntObject(value)) value = apply(bigint, value, []);
  return typeof value !== 'bigint' || (-BIG < value && value < BIG);
};

function each(value, [begin, next]) {
  const iterator = apply(begin, value, []);
  for (let i = 0; i < ITEMS; i++) {
    const { done, value: entry } = apply(next, iterator, []);
    if (done) break;
    const pair = begin === entries.map[0] ? entry : [entry];
    for (let j = 0; j < pair.length; j++) if (isProxy(pair[j]) || !small(pair[j]) || !properties(pair[j])) return false; // of a proxy V8 shows what is behind it
  }
  return true;
}

// properties looks at those that an object has itself.
function properties(object) {
  if (!small(object)) return false;
  if (object === null || typeof object !== 'object' || isProxy(object)) return true;
  if (Array.isArray(object)) {
    for (let i = 0; i < ITEMS && i < object.length; i++) {
      const item = getOwnPropertyDescriptor(object, i);
      if (item ? !small(item.value) : object.length > ITEMS) return false;
    }
    if (object.length > ITEMS) return true;
  } else if (isTypedArray(object) && apply(lengthOf, object, []) > ITEMS) return true;
  const keys = ownKeys(object);
  for (let i = 0; i < keys.length && i < 2 * ITEMS; i++) if (!small(getOwnPropertyDescriptor(object, keys[i]).value)) return false;
  return true;
}

function typeOf(value) {
  if (value.subtype === 'null') return 'null';
  if (value.subtype === 'proxy') return 'Proxy'; // of what is for its handler to say
  if (value.type === 'function') return /^class\b/.test(value.description) ? 'class' : 'function';
  return value.type === 'object' ? String(value.className || 'object').slice(0, TEXT) : value.type;
}

function text(value) {
  switch (value.type) {
    case 'function':
      return value.description.slice(0, (value.description.indexOf('{') + 1 || TEXT + 1) - 1).trim();
    case 'object':
      break;
    default:
      return value.description ?? String(value.value);
  }
  const preview = own(value.preview);
  if (!value.preview || value.subtype === 'proxy') return value.subtype === 'null' ? 'null' : '';
  if (value.subtype === 'date' || value.subtype === 'regexp') return value.description;
  const more = preview.overflow ? ', …' : '';
  if (preview.entries) {
    const entries = copied(preview.entries).map((e) => (e.key ? `${item(own(e.key))} => ` : '') + item(own(e.value)));
    return `{${entries.join(', ')}${more}}`;
  }
  if (value.subtype === 'arraybuffer') return ''; // what it has is its size
  const list = SIZED.has(value.subtype);
  const shown = copied(preview.properties).filter((p) => value.subtype !== 'typedarray' || /^\d+$/.test(p.name));
  const items = shown.map((p) => (list && /^\d+$/.test(p.name) ? '' : `${p.name}: `) + item(p));
  return list ? `[${items.join(', ')}${more}]` : `{${items.join(', ')}${more}}`;
}

// item is one of a preview, a property's or an entry's.
const item = (p) => {
  const said = String(p.value ?? p.description ?? p.type);
  return p.type === 'string' ? JSON.stringify(said) : said;
};

const cut = (s) => (s.length <= TEXT ? s : `${s.slice(0, TEXT - 1)}…`);

module.exports = { make, light };
