'use strict';
// process.stdout, process.stderr and console: text goes to its cell at once. What
// nothing caught is told there too.

const { Writable } = require('node:stream');
const { StringDecoder } = require('node:string_decoder');
const { Console } = require('node:console');
const channel = require('./channel.js');
const { state, over } = require('./realm.js');
const { onUncaught } = require('./async.js');
const childProcess = require('node:child_process');
const fs = require('node:fs');
const { dress, redefine } = require('./async.js');
const { apply } = Reflect;

function install(main, cells) {
  const stdout = stream('o', 1);
  const stderr = stream('e', 2);
  define(process, 'stdout', stdout);
  define(process, 'stderr', stderr);
  const console = new Console({ stdout, stderr, colorMode: false });
  for (const name of Object.keys(main.console)) if (!(name in console)) console[name] = main.console[name];
  redefine(main, 'console', console);
  const { groupEnd } = console;
  cells.ending.push((cell) => {
    stdout.flush(cell);
    stderr.flush(cell);
    if (cell.dead) for (let i = 0; i < 16; i++) groupEnd();
  });
  parted(main);
  keepOpen();
  catchAll(cells);
}

function define(owner, name, value) {
  Object.defineProperty(owner, name, { value, writable: true, configurable: true, enumerable: true });
}

// stream is a Writable that never ends, is never full and never fails.
function stream(type, fd) {
  const decoders = new Map(); // of cells that have written a part of a character
  const print = (chunk, encoding) => {
    const cell = state.current;
    if (cell.dead) return;
    if (typeof chunk === 'string') {
      channel.text(type, cell.id, chunk);
      return;
    }
    let decoder = decoders.get(cell);
    if (!decoder) decoders.set(cell, (decoder = new StringDecoder('utf8')));
    const text = decoder.write(chunk);
    if (text) channel.text(type, cell.id, text);
  };
  const out = new Writable({
    decodeStrings: false,
    write(chunk, encoding, done) {
      if (typeof chunk === 'string' && encoding && !/^(utf-?8|buffer)$/i.test(encoding)) chunk = Buffer.from(chunk, encoding);
      print(chunk);
      done();
    },
    destroy(error, done) {
      done(error);
    },
  });
  const { write } = out;
  out.end = function (chunk, encoding, done) {
    if (chunk !== undefined && chunk !== null && typeof chunk !== 'function') apply(write, out, [chunk, encoding]);
    const called = [chunk, encoding, done].find((f) => typeof f === 'function');
    if (called) process.nextTick(called);
    return out;
  };
  out.destroy = () => out;
  out.fd = fd;
  out._type = 'pipe';
  out.setMaxListeners(0);
  out.flush = (cell) => {
    const decoder = decoders.get(cell);
    if (!decoder) return;
    decoders.delete(cell);
    const text = decoder.end();
    if (text && !cell.dead) channel.text(type, cell.id, text);
  };
  Object.defineProperty(out, 'flush', { enumerable: false });
  return out;
}

const { Buffer } = require('node:buffer');

// parted keeps the order between what is printed here and what children, and writes
// to the descriptors, put into the pipes: before them the reader is waited for.
function parted() {
  const wait = () => channel.ask('b', state.current.id, {});
  for (const name of ['spawnSync', 'execSync', 'execFileSync']) before(childProcess, name, wait);
  before(childProcess.ChildProcess.prototype, 'spawn', wait);
  const raw = (fd) => (fd === 1 || fd === 2) && wait();
  for (const name of ['writeSync', 'write', 'writev', 'writevSync', 'writeFileSync', 'appendFileSync']) before(fs, name, raw);
  // These can wait for the other end of a FIFO.
  for (const name of ['openSync', 'readSync', 'readvSync', 'readFileSync', 'copyFileSync']) before(fs, name, () => {});
  require('node:module').syncBuiltinESMExports();
}

// keepOpen: Node ends at the start of a child for which a descriptor below 3 is free.
function keepOpen() {
  const tick = process.nextTick;
  for (const name of ['close', 'closeSync']) {
    const f = fs[name];
    fs[name] = dress(function (...args) {
      if (args[0] !== 0 && args[0] !== 1 && args[0] !== 2) return apply(f, this, args);
      if (typeof args[1] === 'function') apply(tick, process, [args[1], null]);
      return undefined;
    }, f);
  }
  require('node:module').syncBuiltinESMExports();
}

function before(owner, name, act) {
  const f = owner[name];
  owner[name] = dress(function (...args) {
    act(args[0]);
    try {
      return apply(f, this, args);
    } finally {
      hold();
    }
  }, f);
}

// hold waits for the termination of a cell that is to stop: what it waited for has been ended,
// and between here and the next call of a function nothing would stop it.
function hold() {
  const cell = state.current;
  while (!cell.dead && over(cell));
}

// catchAll: what a callback throws, or a promise that nobody waits for, is told to its
// cell and costs nothing else.
function catchAll(cells) {
  const { emit } = process;
  const { listenerCount } = process;
  const listened = (name) => apply(listenerCount, process, [name]);
  const uncaught = (error, cell = state.current, origin = 'uncaughtException') => {
    if (cell.dead) return;
    if (listened('uncaughtException') > 0) {
      try {
        apply(emit, process, ['uncaughtException', error, origin]);
        return;
      } catch (second) {
        error = second;
      }
    }
    cells.crash(cell, error);
  };
  onUncaught(uncaught);
  process.setUncaughtExceptionCaptureCallback((error) => {
    const { blame } = state;
    state.blame = undefined;
    uncaught(error, blame && blame.error === error ? blame.cell : state.current);
  });
  process.on('unhandledRejection', function unhandled(reason) {
    if (listened('unhandledRejection') <= 1) cells.reject(reason);
  });
}

module.exports = { install };
