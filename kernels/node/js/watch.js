'use strict';
// The thread that stops the main one. It is told over fd 5 which cell is to stop, and
// ends the process when that is closed.
//
// shared[0] is the running cell's id times four and a phase: 0 it runs, 1 it is to
// stop, 2 a termination is on its way. The main thread leaves the cell by swapping the
// word for 0 from 0 or 1, never from 2: so a termination hits the cell that it is
// meant for, or a loop that waits for it.

const { workerData } = require('node:worker_threads');
const net = require('node:net');
const { Session } = require('node:inspector');

const { shared, patience, again, signal } = workerData;
const session = new Session();
session.connectToMainThread();

function stop(cell) {
  const word = Atomics.load(shared, 0);
  if (word >>> 2 !== cell) return;
  const phase = word & 3;
  if (phase === 0) {
    if (Atomics.compareExchange(shared, 0, word, word | 1) !== word) return stop(cell);
    setTimeout(stop, patience, cell); // it may end by itself: see the main thread's "interrupt"
    return;
  }
  if (phase === 2 || Atomics.compareExchange(shared, 0, word, (cell << 2) | 2) !== word) return;
  session.post('Runtime.terminateExecution', () => {
    Atomics.compareExchange(shared, 0, (cell << 2) | 2, (cell << 2) | 1);
    setTimeout(stop, again, cell);
  });
}

let held = Buffer.alloc(0);
const end = () => process.kill(process.pid, signal);
const socket = new net.Socket({ fd: 5, readable: true, writable: false });
socket.on('data', (bytes) => {
  held = Buffer.concat([held, bytes]);
  for (; held.length >= 4; held = held.subarray(4)) stop(held.readUInt32LE(0));
});
socket.on('close', end);
socket.on('error', end);
