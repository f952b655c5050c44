'use strict';
// Values as bundles of data by MIME type: the last expression's, and what display is
// given.

const fs = require('node:fs');
const { inspect, types } = require('node:util');
const { Buffer } = require('node:buffer');
const { fileURLToPath } = require('node:url');
const path = require('node:path');
const channel = require('./channel.js');
const realm = require('./realm.js');
const { table, html, TABLE } = require('./tables.js');
const { heavy, TOO_LARGE } = require('./heavy.js');
const { redefine } = require('./async.js');
const { state } = realm;
const { apply } = Reflect;

const BYTES = Number(process.env.CELLARD_FILE_BYTES) || 64 << 20;
const SHOW = Symbol.for('Jupyter.display');
const base64 = Buffer.prototype.base64Slice || Buffer.prototype.toString;
const { cwd } = process;

// text is what util.inspect makes of a value; a value can't keep it from being text.
function text(value) {
  if (heavy(value)) return TOO_LARGE;
  try {
    return inspect(value, { colors: false, maxStringLength: 100000, breakLength: 80 });
  } catch (error) {
    let why;
    try {
      why = String(error);
    } catch {
      why = 'an error';
    }
    return `[a value that can't be shown: ${why}]`;
  }
}

// describe is the bundle of a value.
function describe(value) {
  const bundle = { __proto__: null, 'text/plain': text(value) };
  if (value === null || typeof value !== 'object') return bundle;
  const image = picture(value);
  if (image) bundle[image.type] = encode(image.bytes);
  const rows = table(value);
  if (rows) {
    bundle[TABLE] = rows;
    bundle['text/html'] = html(rows);
  }
  const shown = custom(value);
  if (shown) Object.assign(bundle, shown);
  return bundle;
}

// custom asks an object how it shows itself, as in other notebooks for JavaScript.
function custom(value) {
  if (types.isProxy(value)) return undefined;
  try {
    const show = value[SHOW];
    if (typeof show !== 'function') return undefined;
    const made = apply(show, value, []);
    return isBundle(made) ? clean(made) : undefined;
  } catch {
    return undefined;
  }
}

// result sends the value of the last expression.
function result(cell, value) {
  sendBundle('r', cell, { data: describe(value) });
}

function sendBundle(type, cell, message) {
  if (cell.dead) return;
  channel.send(type, cell.id, JSON.stringify({ __proto__: null, ...message }));
}

const MIME = /^[a-z]+\/[a-z0-9][a-z0-9!#$&^_.+-]*(;.*)?$/i;

// isBundle: an object whose keys are all MIME types.
function isBundle(value) {
  if (value === null || typeof value !== 'object' || types.isProxy(value) || Array.isArray(value)) return false;
  const keys = Object.keys(value);
  return keys.length > 0 && keys.length < 100 && keys.every((key) => MIME.test(key));
}

// clean makes the values of a bundle what a message holds.
function clean(bundle) {
  const data = { __proto__: null };
  for (const type of Object.keys(bundle)) {
    const value = bundle[type];
    if (value === undefined || value === null) continue;
    if (/^application\/(.*\+)?json$|\+json$/i.test(type.split(';')[0])) data[type] = json(value);
    else if (types.isUint8Array(value)) data[type] = /^(text\/|image\/svg)/.test(type) ? apply(utf8, Buffer.from(value), []) : encode(value);
    else data[type] = String(value);
  }
  return data;
}

const utf8 = Buffer.prototype.utf8Slice || Buffer.prototype.toString;

// json is a value as it would be written, with what JSON lacks told as text.
function json(value) {
  const written = JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? String(v) : v));
  return written === undefined ? null : JSON.parse(written);
}

function encode(bytes) {
  if (bytes.byteLength > BYTES) throw realm.error('RangeError', `${bytes.byteLength} bytes are more than ${BYTES}, which is the limit for showing: save them as a file`);
  return apply(base64, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), base64.name === 'toString' ? ['base64'] : []);
}

// picture finds an image in bytes by how it begins.
function picture(value) {
  if (!types.isUint8Array(value) || value.length < 12 || value.length > BYTES) return undefined;
  const at = (from, ...bytes) => bytes.every((b, i) => value[from + i] === b);
  let type;
  if (at(0, 0x89, 0x50, 0x4e, 0x47)) type = 'image/png';
  else if (at(0, 0xff, 0xd8, 0xff)) type = 'image/jpeg';
  else if (at(0, 0x47, 0x49, 0x46, 0x38)) type = 'image/gif';
  else if (at(0, 0x52, 0x49, 0x46, 0x46) && at(8, 0x57, 0x45, 0x42, 0x50)) type = 'image/webp';
  return type && { type, bytes: value };
}

// makeDisplay is the function display, with its helpers as properties.
function makeDisplay() {
  const show = (value, options, data) => {
    const { id, update, metadata } = options || {};
    const file = data ? undefined : fileOf(value);
    const message = { metadata: metadata && json(metadata), id: id === undefined ? undefined : String(id), update: update === true };
    const cell = state.current;
    if (cell.dead) return;
    if (file !== undefined) {
      const answer = channel.ask('f', cell.id, { ...message, path: path.resolve(cwd(), file), name: file });
      if (answer.error) throw realm.error('Error', answer.error);
      return;
    }
    if (!data) data = isBundle(value) ? clean(value) : typeof value === 'string' ? { 'text/plain': value } : describe(value);
    sendBundle('d', cell, { ...message, data });
  };
  const display = (value, options) => show(value, options);
  const as = (type) => (value, options) => show(undefined, options, clean({ [type]: value }));
  Object.assign(display, {
    html: as('text/html'),
    svg: as('image/svg+xml'),
    markdown: as('text/markdown'),
    json: as('application/json'),
    file: (name, options) => show({ [FILE]: String(name instanceof URL_ || typeof name === 'object' ? fileURLToPath(name) : name) }, options),
    image(bytes, options) {
      const image = picture(bytes);
      if (!image) throw realm.error('TypeError', 'these bytes are no PNG, JPEG, GIF or WebP image: show them by display({"image/…": bytes})');
      show(undefined, options, { [image.type]: encode(image.bytes) });
    },
    update: (id, value) => show(value, { id, update: true }),
    clear: (options) => sendBundle('c', state.current, { wait: options === true || (options && options.wait === true) || false }),
  });
  return display;
}

const FILE = Symbol('file');
const URL_ = main.URL;

// fileOf is the path that display is to show the file of: a string that names one, or a
// file: URL.
function fileOf(value) {
  if (value !== null && typeof value === 'object' && FILE in value) return value[FILE];
  try {
    if (value instanceof URL_ && value.protocol === 'file:') return fileURLToPath(value);
    if (typeof value === 'string' && value.length > 0 && value.length < 4096 && fs.statSync(value).isFile()) return value;
  } catch {
    // No such file: it is a text.
  }
  return undefined;
}

module.exports = { result, makeDisplay, text };
