'use strict';
// The thread that stops the main one. It is told over fd 5 which cell is to stop, and
// ends the process when that is closed.
//
// shared[0] is the running cell's id times four and a phase: 0 it runs, 1 it is to
// stop, 2 a termination is on its way. The main thread leaves the cell by swapping the
// word for 0 from 0 or 1, never from 2: so a termination hits the cell that it is
// meant for, or a command to stop it, which comes again.

const { parentPort, workerData } = require('node:worker_threads');
const net = require('node:net');
const { Session } = require('node:inspector');

const { shared, patience, again, asks, lost, signal } = workerData;
const session = new Session();
session.connectToMainThread();

// A cell that does not begin waits for a callback of an earlier one. It is told to stop
// every so often: a callback that lasts over several is terminated, too. shared[1] is
// the newest cell that has begun.
let waits = 0;
function begin(cell) {
  if (Atomics.load(shared, 1) >= cell || Atomics.load(shared, 0) !== 0) waits = 0;
  else if (++waits > asks && Atomics.compareExchange(shared, 0, 0, (cell << 2) | 2) === 0) {
    waits = 0;
    terminate((cell << 2) | 2, 0);
  }
}

// stop is asked again and again. The first time it leaves the cell a while to end by
// itself: see the main thread's interrupt.
function stop(cell) {
  if (Atomics.compareExchange(shared, 0, cell << 2, (cell << 2) | 1) === cell << 2) setTimeout(kill, patience, cell);
}

function kill(cell) {
  const claimed = (cell << 2) | 1;
  if (Atomics.compareExchange(shared, 0, claimed, (cell << 2) | 2) !== claimed) return;
  terminate((cell << 2) | 2, claimed, () => setTimeout(kill, again, cell));
}

// terminate terminates what the main thread runs, and when that has happened swaps the
// word back. Should nothing be heard of it, it has happened long ago.
function terminate(from, to, then = () => {}) {
  const done = () => {
    clearTimeout(late);
    if (Atomics.compareExchange(shared, 0, from, to) === from) then();
  };
  const late = setTimeout(done, lost);
  session.post('Runtime.terminateExecution', done);
}

let held = Buffer.alloc(0);
const end = () => process.kill(process.pid, signal);
const socket = new net.Socket({ fd: 5, readable: true, writable: false });
socket.on('data', (bytes) => {
  held = Buffer.concat([held, bytes]);
  for (; held.length >= 4; held = held.subarray(4)) {
    begin(held.readUInt32LE(0));
    stop(held.readUInt32LE(0));
  }
});
socket.on('close', end);
socket.on('error', end);
// Only from here on can a cell be stopped: the kernel waits for it.
session.post('Schema.getDomains', () => parentPort.postMessage('ready'));
