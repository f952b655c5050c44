'use strict';
// Signals: as one would end a program it ends the running cell, and what a cell sends to
// its own process does not take the kernel's inspector. Nor does what a cell calls.

const inspector = require('node:inspector');
const { syncBuiltinESMExports } = require('node:module');
const { signals } = require('node:os').constants;
const realm = require('./realm.js');
const { dress } = require('./async.js');
const { apply } = Reflect;

// SIGUSR1 is among them: Node opens a port for debuggers at it, which ends the inspector
// that the kernel has.
const ENDING = ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2'];
// What ends no process by itself.
const HARMLESS = ['SIGCHLD', 'SIGCONT', 'SIGPIPE', 'SIGTSTP', 'SIGTTIN', 'SIGTTOU', 'SIGURG', 'SIGWINCH'];

const { pid: self } = process;
const { on, off, listenerCount } = process;

function install(cells) {
  for (const name of ENDING) {
    process.on(name, () => {
      if (apply(listenerCount, process, [name]) <= 1) cells.signal(name, 128 + signals[name]);
    });
  }
  // Before it sends itself what nobody listens for Node closes the inspector, as it
  // would be the end.
  const { kill } = process;
  process.kill = dress(function (pid, signal) {
    const name = signal === undefined ? 'SIGTERM' : typeof signal === 'number' ? HARMLESS.find((n) => signals[n] === signal) || (signal === signals.SIGSTOP && 'SIGSTOP') : signal;
    const own = [0, -1, self, -self].includes(Number(pid));
    if (own && name === 'SIGSTOP') throw realm.error('Error', 'SIGSTOP would stop the session with the cell');
    if (!own || !HARMLESS.includes(name)) return apply(kill, process, [pid, signal]);
    const nothing = () => {};
    apply(on, process, [name, nothing]);
    try {
      return apply(kill, process, [pid, signal]);
    } finally {
      apply(off, process, [name, nothing]);
    }
  }, kill);
  // It would wait until nobody is connected.
  inspector.close = process._debugEnd = dress(() => {}, inspector.close);
  syncBuiltinESMExports();
}

module.exports = { install };
