'use strict';
// Callbacks that Node itself calls later: of files, names, compression, cryptography;
// listeners of events; threads. They run as the cell's that asked, and of a cell that is
// over not at all, so that no chain of them goes on past its cell.

const module_ = require('node:module');
const realm = require('./realm.js');
const { state, over } = realm;
const { apply, construct } = Reflect;
const { isPrototypeOf } = Object.prototype;
const { dress } = require('./async.js');

const LATER = ['fs', 'dns', 'zlib', 'crypto'];

function install(main) {
  for (const name of LATER) wrapModule(require('node:' + name));
  wrapEvents(require('node:events'));
  wrapThreads(require('node:worker_threads'));
  module_.syncBuiltinESMExports();
}

function wrapModule(exports) {
  for (const name of Object.keys(exports)) {
    const property = Reflect.getOwnPropertyDescriptor(exports, name);
    const f = property.value;
    // Classes, and what calls back at once, stay as they are.
    if (typeof f !== 'function' || !property.writable || /^[A-Z]|Sync$|^create|^get|^_/.test(name)) continue;
    exports[name] = dress(function (...args) {
      const last = args.length - 1;
      if (typeof args[last] === 'function' && state.current !== state.idle) args[last] = carried(args[last]);
      return apply(f, this, args);
    }, f);
  }
}

function carried(callback) {
  const cell = state.current;
  return function (...args) {
    if (over(cell)) return undefined;
    realm.enter(cell);
    return apply(callback, this, args);
  };
}

// Listeners run as the cell's that made the emitter. Those of a dead cell's are still called,
// since Node's own are among them and have to hear what is closed; but what a child or a thread
// tells is the cell's alone.
function wrapEvents(EventEmitter) {
  const alone = [require('node:child_process').ChildProcess.prototype, require('node:worker_threads').Worker.prototype];
  const silent = (emitter) => alone.some((prototype) => apply(isPrototypeOf, prototype, [emitter]));
  const cellOf = Symbol('cell');
  const { init } = EventEmitter;
  const { emit } = EventEmitter.prototype;
  EventEmitter.init = dress(function (options) {
    if (state.current !== state.idle) Reflect.defineProperty(this, cellOf, { value: state.current, enumerable: false });
    return apply(init, this, [options]);
  }, init);
  // The constructor calls it by call, which a cell can take from functions.
  const own = EventEmitter.init;
  Object.defineProperty(own, 'call', { value: (self, options) => apply(own, self, [options]) });
  EventEmitter.prototype.emit = dress(function (...args) {
    const cell = this[cellOf];
    const before = state.current;
    if (cell !== undefined && over(cell) && (!cell.dead || silent(this))) return false;
    if (cell === undefined || cell === before) return apply(emit, this, args);
    state.current = cell;
    try {
      return apply(emit, this, args);
    } catch (error) {
      state.blame = { error, cell }; // should nobody catch it
      throw error;
    } finally {
      state.current = before;
    }
  }, emit);
}

// A thread is no handle that could be found later: its cell remembers it.
function wrapThreads(threads) {
  const { Worker } = threads;
  threads.Worker = new Proxy(Worker, {
    construct(target, args, newTarget) {
      const worker = construct(target, args, newTarget);
      const cell = state.current;
      if (cell.threads) {
        cell.threads.push(worker);
        worker.once('exit', () => (cell.threads = cell.threads.filter((t) => t !== worker)));
      }
      return worker;
    },
  });
}

module.exports = { install };
