'use strict';
// What a cell finds in its global scope: $$cellard, which rewritten cells call, and
// display, prompt, require and the like.

const vm = require('node:vm');
const { createRequire, Module } = require('node:module');
const { pathToFileURL } = require('node:url');
const realm = require('./realm.js');
const { describe } = require('./errors.js');
const { redefine } = require('./async.js');
const { result, makeDisplay } = require('./values.js');
const input = require('./input.js');
const { light } = require('./variables.js');

const { state } = realm;
const cwd = process.cwd;

function install(main, cells) {
  const own = {
    __proto__: null,
    gate: realm.gate,
    restore: realm.restore,
    iterate: realm.iterate,
    mend: () => cells.mend(),
    absorb: realm.absorb,
    import: (specifier, options) => importer()(specifier, options),
    provides,
    meta,
    name: (f, name) => Object.defineProperty(f, 'name', { value: name, configurable: true }),
    result(value) {
      if (value !== undefined && !state.current.silent) result(state.current, value);
    },
    weigh(value) {
      cells.light = light(value);
    },
    fail(thrown) {
      if (cells.cell) cells.cell.error = describe(thrown, cells.positions);
    },
    describe() {
      cells.told = describe(cells.untold, cells.positions);
    },
  };
  Object.defineProperty(main, '$$cellard', { value: Object.freeze(own), enumerable: false });
  redefine(main, 'display', makeDisplay(cells));
  redefine(main, 'prompt', input.prompt);
  redefine(main, 'require', makeRequire());
  const module = new Module('.', null);
  module.filename = `${cwd()}/cell.js`;
  redefine(main, 'module', module);
  main.require.main = module;
  Object.defineProperty(main, 'exports', { get: () => module.exports, set: (v) => (module.exports = v), configurable: true });
  Object.defineProperty(main, '__dirname', { get: () => cwd(), configurable: true, set: replace('__dirname') });
  Object.defineProperty(main, '__filename', { get: () => `${cwd()}/cell.js`, configurable: true, set: replace('__filename') });
  Object.defineProperty(process, 'stdin', { get: input.stdin, set(v) { redefine(process, 'stdin', v); }, configurable: true, enumerable: true });

  process.exit = function exit(code) {
    if (code !== undefined) process.exitCode = code;
    const status = Number(process.exitCode ?? 0);
    process.exitCode = undefined;
    cells.exit(status);
  };
  process.argv = arrayOf(main, [process.execPath, 'cell']);
  process.execArgv = arrayOf(main, []);
  main.Error.prepareStackTrace = (error, sites) => cells.positions.prepare(error, sites);
  main.Error.stackTraceLimit = 50;
}

const arrayOf = (main, items) => {
  const list = new main.Array();
  for (const item of items) list[list.length] = item;
  return list;
};

const replace = (name) => (value) => redefine(main, name, value);

// importer is an import() that resolves as a module in the working directory would.
const importers = new Map();
function importer() {
  const directory = cwd();
  if (!importers.has(directory)) {
    if (importers.size > 100) importers.clear();
    importers.set(directory, realm.referrer(vm, `${directory}/cell.mjs`));
  }
  return importers.get(directory);
}

// provides has what an import declaration names, as a module's linking would find it,
// and a CommonJS module's properties that Node doesn't foresee.
function provides(space, names, specifier) {
  const found = { __proto__: null };
  for (const name of names) {
    const other = space.default;
    if (name in space) found[name] = space[name];
    else if (other !== null && /^(object|function)$/.test(typeof other) && name in other) found[name] = other[name];
    else throw realm.error('SyntaxError', `The requested module '${specifier}' does not provide an export named '${name}'`);
  }
  return found;
}

function meta() {
  const filename = `${cwd()}/cell.mjs`;
  const url = String(pathToFileURL(filename));
  const found = new main.Object();
  const resolve = (specifier) => {
    const path = main.require.resolve(specifier);
    return path.startsWith('/') ? String(pathToFileURL(path)) : `node:${path.replace(/^node:/, '')}`;
  };
  return Object.assign(found, { dirname: cwd(), filename, main: true, resolve, url });
}

// makeRequire is a require that resolves from the working directory.
function makeRequire() {
  const requires = new Map();
  const here = () => {
    const directory = cwd();
    if (!requires.has(directory)) {
      if (requires.size > 100) requires.clear();
      requires.set(directory, createRequire(`${directory}/cell.js`));
    }
    return requires.get(directory);
  };
  const own = function require(id) {
    return here()(id);
  };
  own.resolve = (id, options) => here().resolve(id, options);
  own.resolve.paths = (id) => here().resolve.paths(id);
  own.cache = here().cache;
  own.extensions = here().extensions;
  return own;
}

module.exports = { install };
