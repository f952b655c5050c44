'use strict';
// The kernel's channels: frames out over fd 3, each in one write, which waits when the
// reader is slow; commands in over fd 4; answers to what the cell's thread waits for
// over fd 5.
//
// A frame is the length of its payload, its type, the cell's id, the payload. A
// command or an answer is its length and JSON.

const fs = require('node:fs');
const net = require('node:net');
const { writeSync, readSync } = fs;
const { Buffer } = require('node:buffer');
const { byteLength, from } = Buffer;
const write = Buffer.prototype.utf8Write || Buffer.prototype.write;
const toText = Buffer.prototype.utf8Slice;
const { apply } = Reflect;
const { error } = require('./realm.js');
const { detach } = require('./guard.js');

const HEAD = 9;
const PIECE = 64 * 1024; // of text, in UTF-16 units
// The reader refuses more. The JSON of what is shown is bounded before.
const LIMIT = 128 * 1024 * 1024;

// send writes a frame. A payload is text.
function send(type, cell, text) {
  const size = apply(byteLength, Buffer, [text, 'utf8']);
  if (size > LIMIT) throw error('RangeError', `this is ${size} bytes, and at most ${LIMIT} can be shown`);
  // An array of this realm: what a cell does to its own is not done to it.
  const frame = new Uint8Array(HEAD + size);
  put32(frame, 0, size);
  frame[4] = type.charCodeAt(0);
  put32(frame, 5, cell);
  apply(write, frame, [text, HEAD, size]);
  let done = 0;
  while (done < frame.length) done += writeSync(3, frame, done, frame.length - done);
}

function put32(to, at, value) {
  to[at] = value & 255;
  to[at + 1] = (value >>> 8) & 255;
  to[at + 2] = (value >>> 16) & 255;
  to[at + 3] = (value >>> 24) & 255;
}

function get32(of, at) {
  return (of[at] | (of[at + 1] << 8) | (of[at + 2] << 16) | (of[at + 3] << 24)) >>> 0;
}

// text sends what was printed, in pieces that don't part a surrogate pair.
function text(type, cell, value) {
  for (let at = 0; at < value.length; ) {
    let end = Math.min(at + PIECE, value.length);
    const unit = value.charCodeAt(end - 1);
    if (end < value.length && unit >= 0xd800 && unit < 0xdc00 && end - at > 1) end--;
    send(type, cell, at === 0 && end === value.length ? value : value.slice(at, end));
    at = end;
  }
}

// Splitter puts messages together from pieces.
class Splitter {
  constructor() {
    this.held = new Uint8Array(64 * 1024);
    this.used = 0;
  }

  add(bytes, length) {
    if (this.used + length > this.held.length) {
      const larger = new Uint8Array(2 * (this.used + length));
      larger.set(this.held);
      this.held = larger;
    }
    this.held.set(length === bytes.length ? bytes : bytes.subarray(0, length), this.used);
    this.used += length;
  }

  // take is the next message, or undefined.
  take() {
    const { held, used } = this;
    if (used < 4) return undefined;
    const size = get32(held, 0);
    if (used < 4 + size) return undefined;
    const json = apply(toText, held, [4, 4 + size]);
    held.copyWithin(0, 4 + size, used);
    this.used = used - 4 - size;
    if (this.used === 0 && held.length > 1024 * 1024) this.held = new Uint8Array(64 * 1024);
    return JSON.parse(json);
  }
}

// listen calls handle with each command, and ended when there is no more to come. The
// callback of the read is called by the handle itself, past every prototype that a
// cell can change.
function listen(handle, ended) {
  const pieces = new Splitter();
  const socket = new net.Socket({
    fd: 4,
    readable: true,
    writable: false,
    onread: {
      buffer: new Uint8Array(64 * 1024),
      callback(length, bytes) {
        pieces.add(bytes, length);
        for (let m = pieces.take(); m !== undefined; m = pieces.take()) handle(m);
        return true;
      },
    },
  });
  socket.on('end', ended);
  socket.on('error', ended);
  socket.resume();
  detach(socket);
  return socket;
}

// ask sends a frame and waits for its answer, in the cell's own thread. What an
// earlier call did not stay for is passed over by its number.
const answers = new Splitter();
const buffer = new Uint8Array(64 * 1024);
let asked = 0;
function ask(type, cell, question) {
  const n = ++asked;
  send(type, cell, JSON.stringify({ __proto__: null, ...question, n }));
  for (;;) {
    const answer = answers.take();
    if (answer === undefined) {
      const length = readSync(5, buffer, 0, buffer.length, null);
      if (length === 0) throw new Error('the kernel is ending');
      answers.add(buffer, length);
    } else if (answer.n === n) {
      return answer;
    }
  }
}

module.exports = { send, text, listen, ask, LIMIT, bytes: (value) => apply(from, Buffer, [value]) };
