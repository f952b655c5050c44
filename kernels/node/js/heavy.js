'use strict';
// Integers that take too long to write: V8 takes more than ten seconds for some of 10 MB, and
// nothing can stop it meanwhile.

const { isBigIntObject, isMap, isProxy, isSet } = require('node:util').types;

const BITS = 1n << 20n;
const TOO_LARGE = `[a value with an integer of more than ${BITS} bits, too large to write: x.toString(16) is quick]`;
const DEPTH = 2; // util.inspect goes as deep
const ITEMS = 100; // and shows as many of an array, a map or a set
const LOOKED = 100000; // properties
const { apply, ownKeys } = Reflect;
// The user's realm's: some of Node's globals are made when they are first looked at, which
// ends Node (24, GetPerContextExports) where that is done in another realm.
const { getOwnPropertyDescriptor } = main.Reflect;
const bigint = BigInt.prototype.valueOf;
const { isArray } = Array;
const entries = {
  map: [Map.prototype.entries, new Map().entries().next],
  set: [Set.prototype.values, new Set().values().next],
};
let most; // made where it is needed

// heavy tells whether util.inspect would write such an integer of a value. Nothing of the
// cells' runs here.
function heavy(value) {
  let left = LOOKED;
  const look = (value, depth) => {
    if (typeof value === 'bigint') {
      most ??= [-(1n << BITS), 1n << BITS];
      return value <= most[0] || value >= most[1];
    }
    if (value === null || typeof value !== 'object' && typeof value !== 'function' || isProxy(value)) return false;
    if (isBigIntObject(value)) return look(apply(bigint, value, []), depth);
    if (depth > DEPTH) return false;
    if (isMap(value) && each(value, entries.map, depth) || isSet(value) && each(value, entries.set, depth)) return true;
    if (ArrayBuffer.isView(value)) return false;
    if (isArray(value)) {
      for (let i = 0; i < ITEMS && i < value.length; i++) if (property(value, i, depth)) return true;
      if (value.length > ITEMS) return false;
    }
    const keys = ownKeys(value);
    for (let i = 0; i < keys.length && left-- > 0; i++) if (property(value, keys[i], depth)) return true;
    return false;
  };
  const property = (object, key, depth) => {
    const found = getOwnPropertyDescriptor(object, key);
    return found !== undefined && look({ __proto__: null, ...found }.value, depth + 1);
  };
  const each = (value, [begin, next], depth) => {
    const iterator = apply(begin, value, []);
    for (let i = 0; i < ITEMS; i++) {
      const { done, value: entry } = apply(next, iterator, []);
      if (done) break;
      if (begin === entries.set[0] ? look(entry, depth + 1) : look(entry[0], depth + 1) || look(entry[1], depth + 1)) return true;
    }
    return false;
  };
  return look(value, 0);
}

module.exports = { heavy, TOO_LARGE };
