'use strict';
// What Node's own JavaScript finds in prototypes that a cell can change, kept as it was
// where the kernel hangs on it.

const { apply, defineProperty, deleteProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys, setPrototypeOf } = Reflect;
const { iterator } = Symbol;
const { setImmediate } = require('node:timers');

// detach gives an object all that it inherits as a prototype of its own.
function detach(object) {
  const own = { __proto__: null };
  for (let from = getPrototypeOf(object); from !== null; from = getPrototypeOf(from)) {
    for (const key of ownKeys(from)) {
      if (key !== '__proto__' && !getOwnPropertyDescriptor(own, key)) defineProperty(own, key, getOwnPropertyDescriptor(from, key));
    }
  }
  setPrototypeOf(object, own);
}

// keepPop: Node ends each callback by taking from a list, execution_async_resources,
// with the method pop of all arrays. The list is found as that is called, and gets one of
// its own, and no more of a prototype. done is called when it has it.
function keepPop(main, done) {
  const { prototype } = main.Array;
  const native = prototype.pop;
  const own = { value: native, writable: true, configurable: true, enumerable: false };
  prototype.pop = function pop() {
    if (/ popAsyncContext /.test(new Error().stack)) {
      defineProperty(this, 'pop', own);
      setPrototypeOf(this, null);
    }
    return apply(native, this, []);
  };
  process.nextTick(() => {});
  setImmediate(() => {
    defineProperty(prototype, 'pop', own);
    done();
  });
}

// whole calls a function while arrays work as ever, whatever a cell has made of that:
// they can be iterated, and have no setters where nothing is.
const arrays = main.Array.prototype;
const walker = getPrototypeOf(new main.Array()[iterator]());
const needed = [[arrays, iterator], [walker, 'next'], [arrays, '0'], [arrays, '1'], [arrays, '2']].map(([owner, key]) => ({ owner, key, native: getOwnPropertyDescriptor(owner, key) }));
function whole(f) {
  const changed = [];
  for (const { owner, key, native } of needed) {
    const found = getOwnPropertyDescriptor(owner, key);
    if (native ? found && found.value === native.value : !found) continue;
    if (native ? defineProperty(owner, key, native) : deleteProperty(owner, key)) changed.push({ owner, key, found });
  }
  try {
    return f();
  } finally {
    for (const { owner, key, found } of changed) {
      if (found) defineProperty(owner, key, found);
      else deleteProperty(owner, key);
    }
  }
}

module.exports = { detach, keepPop, whole };
