'use strict';
// What has to belong to the user's realm: the functions that an async function of a
// cell waits on, so that its stack is still told through them, and the errors that a
// cell can catch. It is loaded before any cell, and keeps what it uses of the globals.

const { apply } = Reflect;
const classes = { Error, TypeError, SyntaxError, RangeError };
const PromiseThen = Promise.prototype.then;
const never = new Promise(() => {});

// state.current is the cell that runs now: an object with id, dead and flag.
const state = { __proto__: null, current: null, running: null, idle: null };
exports.state = state;

// status is read from outside, as the main thread computes (watch.go): the cell whose code
// runs, and the newest that has begun.
const status = (globals.status = { __proto__: null, running: 0, newest: 0 });
exports.status = status;

// claimed reports whether the cell of a flag is to stop: that is put there from outside.
const claimed = (flag) => globals[flag] !== undefined;
exports.claimed = claimed;

// over reports whether nothing of a cell may begin any more: it has ended by force, or is
// to, and has perhaps been terminated already.
const over = (cell) => cell.dead || (claimed(cell.flag) && status.running === cell.id);
exports.over = over;
exports.never = never;

exports.error = (kind, message, name) => {
  const error = new (classes[kind] || classes.Error)(message);
  if (name) Object.defineProperty(error, 'name', { value: name, configurable: true, writable: true });
  return error;
};

// gate waits for a value on behalf of a cell. Of one that is over it never comes back.
exports.gate = async function gate(value) {
  const cell = state.current;
  let failed = false;
  let result;
  try {
    result = await value;
  } catch (error) {
    failed = true;
    result = error;
  }
  if (over(cell)) await never;
  return { __proto__: null, cell, failed, result };
};

// settle calls one of two functions when a promise is settled. It is the language's own
// await, which nothing that a cell changes has a part in.
exports.settle = async function settle(promise, fulfilled, rejected) {
  try {
    await promise;
  } catch (error) {
    rejected(error);
    return;
  }
  fulfilled();
};

// restore makes the cell that waited the current one again, and hands over what it
// waited for. What runs after it without a gate is the running cell's.
exports.restore = function restore(token) {
  enter(token.cell);
  if (token.failed) throw token.result;
  return token.result;
};

// iterate is gate for the values of for await.
exports.iterate = function iterate(values) {
  const from = values[asyncIterator];
  const iterator = from === undefined || from === null ? values[syncIterator]() : apply(from, values, []);
  const { next } = iterator;
  const waited = async (promise) => exports.restore(await exports.gate(promise));
  const own = {
    __proto__: null,
    async next() {
      const step = await waited(apply(next, iterator, []));
      if (from === undefined || from === null) return { done: step.done, value: await waited(step.value) };
      return step;
    },
    async return(value) {
      const f = iterator.return;
      return f ? waited(apply(f, iterator, [value])) : { done: true, value };
    },
    [asyncIterator]: () => own,
  };
  return own;
};
const { asyncIterator, iterator: syncIterator } = Symbol;

const microtask = queueMicrotask;
const leave = () => {
  state.current = state.running || state.idle;
};
function enter(cell) {
  state.current = cell;
  if (cell !== state.running && state.running) microtask(leave);
}
exports.enter = enter;

// then gives the callbacks of a promise to the cell that added them.
exports.then = {
  then(fulfilled, rejected) {
    const cell = state.current;
    return apply(PromiseThen, this, [carry(cell, fulfilled), carry(cell, rejected)]);
  },
}.then;

function carry(cell, callback) {
  if (typeof callback !== 'function' || cell === state.idle) return callback;
  return (value) => {
    if (over(cell)) return never;
    if (cell !== state.current) enter(cell);
    return callback(value);
  };
}

// absorb waits where a termination that is on its way does no harm.
exports.absorb = () => {
  for (;;);
};

exports.referrer = (vm, filename) =>
  new vm.Script('(specifier, options) => import(specifier, options)', {
    filename,
    importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  }).runInThisContext();
