'use strict';
// What a user sees of an error: its name, its message, and a trace of the user's own
// frames.

const { inspect, types } = require('node:util');
const { heavy, TOO_LARGE } = require('./heavy.js');
const { place } = require('./edits.js');

const FRAMES = 50;
const DEPTH = 4; // of causes
const TEXT = 256 * 1024;

// describe tells of anything that was thrown: {name, value, traceback}.
function describe(thrown, positions) {
  if (!isError(thrown)) {
    const text = short(safely(() => (heavy(thrown) ? TOO_LARGE : inspect(thrown, { colors: false })), 'a value that can not be shown'));
    return { name: 'Error', value: text, traceback: [`Uncaught ${text}`] };
  }
  const name = short(safely(() => String(thrown.name || thrown.constructor.name), 'Error'));
  const value = short(safely(() => String(thrown.message), ''));
  return { name, value, traceback: lines(thrown, name, value, positions, 0, new Set()) };
}

const isError = (value) => types.isNativeError(value) || safely(() => value !== null && typeof value === 'object' && typeof value.stack === 'string' && 'message' in value, false);

function lines(error, name, value, positions, depth, seen) {
  seen.add(error);
  const stack = safely(() => String(error.stack), '');
  const head = value ? `${name}: ${value}` : name;
  const frames = own(stack, head);
  const out = [];
  if (depth === 0) out.push(...excerpt(frames, positions));
  out.push(...head.split('\n'), ...frames);
  if (depth < DEPTH) {
    const causes = safely(() => (types.isNativeError(error.cause) ? [error.cause] : []), []);
    const parts = safely(() => (Array.isArray(error.errors) ? Array.from(error.errors).slice(0, 10) : []), []);
    for (const [what, list] of [['Caused by:', causes], ['One of its errors:', parts]]) {
      for (const inner of list) {
        if (seen.has(inner) || !isError(inner)) continue;
        const innerName = short(safely(() => String(inner.name), 'Error'));
        const innerValue = short(safely(() => String(inner.message), ''));
        out.push(what, ...lines(inner, innerName, innerValue, positions, depth + 1, seen));
      }
    }
  }
  return out;
}

// own are the frames down to the last of the user's, without Node's own internals.
function own(stack, head) {
  const at = stack.startsWith(head) ? head.length : 0;
  const all = stack.slice(at).split('\n').filter((line) => /^ {4}at /.test(line));
  const frames = all.filter((line) => !/\(?(node:|cellard:)/.test(line) && !/\(<anonymous>\)$|at <anonymous>$|at new Promise/.test(line));
  return frames.slice(0, FRAMES);
}

// excerpt is the line that the first of the user's frames is in, with a mark.
function excerpt(frames, positions) {
  for (const frame of frames) {
    const match = /\(?(cell-\d+\.[jt]s):(\d+):(\d+)\)?$/.exec(frame);
    if (match) return mark(match[1], positions.text(match[1]), Number(match[2]), Number(match[3]));
  }
  return [];
}

function mark(file, code, line, column) {
  if (code === undefined) return [];
  const text = code.split('\n')[line - 1];
  if (text === undefined || text.length > 500) return [`${file}:${line}`];
  return [`${file}:${line}`, text, text.slice(0, column - 1).replace(/[^\t]/g, ' ') + '^'];
}

// syntaxError tells of an error of the parser.
function syntaxError(cell, error) {
  const value = error.message.replace(/ \(\d+:\d+\)$/, '');
  const { line, column } = place(cell.code, error.pos ?? 0);
  return { name: 'SyntaxError', value, traceback: [...mark(cell.file, cell.code, line, column), `SyntaxError: ${value}`] };
}

function short(text) {
  return text.length > TEXT ? text.slice(0, TEXT) + '…' : text;
}

function safely(f, otherwise) {
  try {
    return f();
  } catch {
    return otherwise;
  }
}

module.exports = { describe, syntaxError };
