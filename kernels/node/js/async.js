'use strict';
// What runs later remembers its cell: timers, ticks, microtasks, promises' callbacks.
// It runs as that cell's, and of a cell that is over not at all.
//
// The body of a timer runs in a microtask: there it can be terminated, while a
// termination in the timer's own call would end the process.

const timers = require('node:timers');
const realm = require('./realm.js');
const { state, over } = realm;
const { apply } = Reflect;

function install(main) {
  const microtask = main.queueMicrotask;
  const tick = process.nextTick;
  const native = {};
  for (const name of ['setTimeout', 'setInterval', 'setImmediate', 'clearInterval', 'clearImmediate']) native[name] = timers[name];

  // runs makes what a timer calls of a callback.
  const runs = (callback, stop) => {
    const cell = state.current;
    return function (...args) {
      if (over(cell)) return stop(this);
      microtask(() => as(cell, callback, this, args));
    };
  };
  const checked = (callback, native) => {
    if (typeof callback !== 'function') native(callback); // throws as it always does
  };

  const own = {
    setTimeout(callback, delay, ...args) {
      checked(callback, native.setTimeout);
      return native.setTimeout(runs(callback, () => {}), delay, ...args);
    },
    setInterval(callback, delay, ...args) {
      checked(callback, native.setInterval);
      return native.setInterval(runs(callback, (timer) => native.clearInterval(timer)), delay, ...args);
    },
    setImmediate(callback, ...args) {
      checked(callback, native.setImmediate);
      return native.setImmediate(runs(callback, () => {}), ...args);
    },
  };
  for (const name of Object.keys(own)) {
    const f = dress(own[name], native[name]);
    timers[name] = f;
    redefine(main, name, f);
  }

  redefine(main, 'queueMicrotask', dress(function queueMicrotask(callback) {
    checked(callback, microtask);
    const cell = state.current;
    microtask(() => over(cell) || as(cell, callback, undefined, []));
  }, microtask));

  process.nextTick = dress(function nextTick(callback, ...args) {
    checked(callback, tick);
    const cell = state.current;
    apply(tick, process, [() => over(cell) || as(cell, callback, undefined, args)]);
  }, tick);

  // The inspector waits for a cell by these, so they stay.
  const then = dress(realm.then, main.Promise.prototype.then);
  Object.defineProperty(main.Promise.prototype, 'then', { value: then, writable: false, configurable: false, enumerable: false });
  Object.defineProperty(main.Promise.prototype, 'constructor', { writable: false, configurable: false });
}

// as runs a callback as a cell's; what it throws is that cell's.
function as(cell, callback, self, args) {
  const before = state.current;
  state.current = cell;
  try {
    apply(callback, self, args);
  } catch (error) {
    uncaught(error, cell);
  } finally {
    state.current = before;
  }
}

let uncaught = (error) => {
  throw error;
};

// dress gives a function the name, length and other properties of the one it stands for.
function dress(f, native) {
  for (const key of Reflect.ownKeys(native)) {
    if (key === 'prototype') continue;
    Reflect.defineProperty(f, key, Reflect.getOwnPropertyDescriptor(native, key));
  }
  Reflect.setPrototypeOf(f, Reflect.getPrototypeOf(native));
  return f;
}

function redefine(owner, name, value) {
  const property = Reflect.getOwnPropertyDescriptor(owner, name);
  Reflect.defineProperty(owner, name, { value, writable: true, configurable: true, enumerable: property ? property.enumerable : false });
}

module.exports = { install, as, dress, redefine, onUncaught: (f) => (uncaught = f) };
