'use strict';
// Input: prompt() waits for an answer in place; process.stdin asks for a line when it
// is read. A cell that was run without answers gets an error at once.

const { Readable } = require('node:stream');
const channel = require('./channel.js');
const realm = require('./realm.js');
const { dress } = require('./async.js');
const { state } = realm;
const { apply } = Reflect;

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

const states = new WeakMap(); // of the streams

// A line is asked for only when somebody waits for one: a stream reads ahead, but a
// question that nobody has is a question that a host can't answer.
function make(cell) {
  const own = { interfaces: new Set(), questions: 0, empty: false, asking: 0 };
  const stream = new Readable({
    highWaterMark: 1,
    read() {
      own.empty = true;
      own.ask();
    },
    destroy(error, done) {
      waiting.delete(own.asking);
      done(error);
    },
  });
  own.wanted = () => {
    if (own.interfaces.size === 0) return stream.listenerCount('data') + stream.listenerCount('readable') > 0;
    return own.questions > 0 || [...own.interfaces].some((i) => i.listenerCount('line') > 0);
  };
  own.ask = () => {
    if (!own.empty || own.asking || !own.wanted()) return;
    own.asking = ++asked;
    waiting.set(own.asking, (message) => {
      own.asking = 0;
      own.empty = false;
      own.questions = Math.max(0, own.questions - 1);
      if (!message.error) stream.push(message.value + '\n');
      else if (state.running === cell) stream.destroy(realm.error('Error', message.error, 'StdinNotImplementedError'));
      else stream.push(null);
    });
    channel.send('q', cell.id, JSON.stringify({ prompt: '', password: false, n: own.asking }));
  };
  states.set(stream, own);
  stream.on('newListener', () => process.nextTick(own.ask));
  stream.fd = 0;
  stream.ref = stream.unref = () => stream;
  return stream;
}

// answer takes the answer to a read of stdin.
function answer(message) {
  const take = waiting.get(message.n);
  waiting.delete(message.n);
  if (take) take(message);
}

// install has readline tell when it has a question.
function install() {
  for (const readline of [require('node:readline'), require('node:readline/promises')]) {
    const { createInterface } = readline;
    readline.createInterface = dress(function (...args) {
      const made = apply(createInterface, this, args);
      const own = states.get(made.input);
      if (own) {
        own.interfaces.add(made);
        made.once('close', () => own.interfaces.delete(made));
        made.on('newListener', () => process.nextTick(own.ask));
      }
      return made;
    }, createInterface);
    const { question } = readline.Interface.prototype;
    readline.Interface.prototype.question = dress(function (...args) {
      const result = apply(question, this, args);
      const own = states.get(this.input);
      if (own) {
        own.questions++;
        own.ask();
      }
      return result;
    }, question);
  }
}

module.exports = { prompt, stdin, answer, install };
