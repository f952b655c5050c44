'use strict';
// Input: prompt() waits for an answer in place; process.stdin asks for a line when it
// is read. A cell that was run without answers gets an error at once.

const { Readable } = require('node:stream');
const channel = require('./channel.js');
const realm = require('./realm.js');
const { state } = realm;

// prompt is the browser's: the line without its end, or the default for an empty one.
function prompt(message = '', otherwise = undefined) {
  const answer = channel.ask('i', state.current.id, { prompt: `${message}`, password: false });
  if (answer.error) throw realm.error('Error', answer.error, 'StdinNotImplementedError');
  return answer.value === '' && otherwise !== undefined ? `${otherwise}` : answer.value;
}

const waiting = new Map();
let asked = 0;

// stdin is a stream of lines, of its own for each cell.
const streams = new WeakMap();
function stdin() {
  const cell = state.current;
  let stream = streams.get(cell);
  if (!stream) streams.set(cell, (stream = make(cell)));
  return stream;
}

function make(cell) {
  let n;
  const stream = new Readable({
    highWaterMark: 1,
    read() {
      n = ++asked;
      waiting.set(n, (message) => {
        if (message.error) stream.destroy(realm.error('Error', message.error, 'StdinNotImplementedError'));
        else stream.push(message.value + '\n');
      });
      channel.send('q', cell.id, JSON.stringify({ prompt: '', password: false, n }));
    },
    destroy(error, done) {
      waiting.delete(n);
      done(error);
    },
  });
  stream.fd = 0;
  stream.isTTY = undefined;
  stream.setRawMode = undefined;
  stream.ref = stream.unref = () => stream;
  return stream;
}

// answer takes the answer to a read of stdin.
function answer(message) {
  const take = waiting.get(message.n);
  waiting.delete(message.n);
  if (take) take(message);
}

module.exports = { prompt, stdin, answer };
