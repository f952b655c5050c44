'use strict';
// One cell at a time: run, and its end, however it comes.

const inspector = require('node:inspector');
const channel = require('./channel.js');
const realm = require('./realm.js');
const { rewrite } = require('./rewrite.js');
const { Positions } = require('./positions.js');
const { syntaxError } = require('./errors.js');
const { Surroundings } = require('./surroundings.js');
const { closeSince, handles } = require('./handles.js');
const { whole } = require('./guard.js');

const { state, status, claimed } = realm;
const { setImmediate } = require('node:timers');
const { onInit } = require('node:v8').promiseHooks;
const microtask = main.queueMicrotask;

const disturbing = [[main.Object.prototype, 'toJSON'], ...['toJSON', '0', '1', '2'].map((key) => [main.Array.prototype, key])];

class Cells {
  constructor() {
    this.session = connect();
    this.own = connect(); // for what the running code itself asks for
    this.kinds = new Map();
    this.positions = new Positions();
    state.idle = state.current = { id: 0, flag: '', dead: false };
    this.ended = 0; // the newest cell that was answered
    this.ending = []; // what is called as a cell ends
  }

  // start runs a cell once the event loop comes round: what is evaluated in a setImmediate
  // can be terminated without harm.
  start(message) {
    const cell = {
      id: message.id,
      flag: flagOf(message.id),
      dead: false,
      silent: message.silent,
      file: message.file,
      code: message.code,
      map: message.map,
      source: message.source,
      plain: message.plain,
      stdin: message.stdin,
      exit: undefined,
      finished: undefined, // {error}: its code is through
      turned: false,
      before: undefined,
      threads: [],
    };
    this.cell = state.running = state.current = cell;
    this.newest = cell.id;
    status.newest = cell.id;
    for (const name of Object.keys(globalThis)) {
      // It may have come when its cell was over.
      if (name.startsWith('stop') && name !== cell.flag) unclaim(name);
    }
    cell.before = handles();
    setImmediate(() => {
      try {
        this.run(cell, message);
      } catch (error) {
        this.end(cell, internal(error));
      }
    });
    setImmediate(() => this.turn(cell));
  }

  run(cell, message) {
    if (this.cell !== cell) return;
    cell.surroundings = new Surroundings(message);
    try {
      cell.surroundings.enter();
    } catch (error) {
      return this.end(cell, { name: error.name, value: error.message, traceback: [] });
    }
    this.evaluate(cell, true);
  }

  evaluate(cell, again) {
    let made;
    try {
      made = rewrite(cell.code, this.kinds);
    } catch (error) {
      if (!(error instanceof SyntaxError) && !(error instanceof RangeError)) throw error;
      if (cell.plain) return this.end(cell, null, false, 'typescript');
      if (error.final || !compiles(cell)) return this.end(cell, syntaxError(cell, error));
      made = { code: cell.code, names: new Map() }; // newer than the parser
    }
    this.positions.add(cell.file, { code: cell.code, edits: made.edits, map: cell.map, source: cell.source, cell });
    const options = {
      expression: `${made.code}\n//# sourceURL=${cell.file}`,
      replMode: true,
      awaitPromise: true,
    };
    // From here on what runs may be terminated.
    status.running = cell.id;
    if (claimed(cell.flag)) return; // the next command to stop it ends it
    const answered = (failed, answer) => {
      const thrown = answer && answer.exceptionDetails;
      const clash = again && thrown && redeclared(thrown);
      if (clash) {
        this.kinds.set(clash, this.kinds.get(clash) === 'var' || !ownGlobal(clash) ? 'let' : 'var');
        return this.evaluate(cell, false);
      }
      this.finish(cell, thrown ? this.thrown(cell, thrown) : { name: 'Error', value: String(failed && failed.message), traceback: [] });
    };
    let promise; // the code's own, which is the first that is made
    const stop = whole(() => onInit((made) => {
      promise = made;
      stop();
    }));
    let left = false;
    this.post('Runtime.evaluate', options, (failed, answer) => left || answered(failed, answer));
    stop();
    left = true;
    if (!promise || this.cell !== cell || cell.finished) return;
    this.disconnect();
    const declare = () => {
      for (const [name, kind] of made.names) this.kinds.set(name, kind);
    };
    realm.settle(promise, () => this.settled(cell, declare), (error) => this.settled(cell, declare, () => this.tell(error)));
  }

  // settled goes on when the code of a cell is through. It is the kernel that waits for that,
  // not the inspector: this reads the stack of an error where nothing can be stopped, which
  // ends Node 20 and blocks Node 24, and tells of a promise that was collected from within
  // the collector, which ends Node 24.
  settled(cell, declare, failed = () => null) {
    if (this.cell !== cell) return; // it has been given up
    try {
      declare();
      this.finish(cell, failed());
    } catch (error) {
      this.end(cell, internal(error));
    }
  }

  // finish ends a cell when the microtasks and ticks that it leaves are done, too: as long
  // as they keep the thread no other cell could run, so the deadline is still this one's.
  finish(cell, error) {
    cell.finished = { error };
    if (cell.turned) setImmediate(() => this.turn(cell));
  }

  // turn is where what a cell has left is done: it stands behind the cell in the queue of
  // immediates, and so before any timer.
  turn(cell) {
    if (this.cell === cell && !cell.dead && realm.over(cell)) return this.interrupt(cell.id); // what it ran has been terminated
    cell.turned = true;
    if (cell.finished) microtask(() => this.end(cell, cell.finished.error));
  }

  // disconnect leaves the session, and with it what that waits for. The next one is made
  // when it is needed, or when the cell has been answered.
  disconnect() {
    try {
      this.session.disconnect();
    } catch {
      // It tells its callbacks by process.nextTick, which may be anything.
    }
    this.session = undefined;
    this.rootId = undefined;
  }

  // thrown describes what a cell has thrown before it could run. It runs the user's code (getters, a proxy's
  // traps), and so through the session, where it can be stopped.
  thrown(cell, details) {
    const exception = details.exception;
    const argument = exception.objectId ? { objectId: exception.objectId } : 'unserializableValue' in exception ? { unserializableValue: exception.unserializableValue } : { value: exception.value };
    cell.error = undefined;
    this.call('fail', argument);
    this.post('Runtime.releaseObject', { objectId: exception.objectId || '' }, () => {});
    return cell.error || { name: 'Error', value: details.text, traceback: [] };
  }

  // call calls a function of $$cellard with a value that the inspector knows.
  call(name, argument) {
    this.post('Runtime.callFunctionOn', {
      functionDeclaration: `function(value) { $$cellard.${name}(value) }`,
      objectId: this.root(),
      arguments: [argument],
      silent: true,
    }, () => {});
  }

  // root is the inspector's id of the user's global object, to call functions on.
  root() {
    if (!this.rootId) {
      this.post('Runtime.evaluate', { expression: 'globalThis', objectGroup: 'cellard' }, (_, answer) => {
        this.rootId = answer.result.objectId;
      });
    }
    return this.rootId;
  }

  // leave is the end of what may be terminated. It returns false where the cell is to stop
  // and asked is false: then the next command to stop it ends it, in a place where a
  // termination that is on its way does no harm.
  leave(cell, asked) {
    const runs = status.running === cell.id;
    status.running = 0; // before the flag is read: it is put there before this is
    if (!claimed(cell.flag)) return true;
    if (runs) status.running = cell.id;
    if (runs && !asked) return false;
    this.settle(cell.id);
    status.running = 0;
    return true;
  }

  // settle returns when no termination for a cell is on its way any more, and none will be.
  settle(id) {
    if (channel.ask('l', id, {}).coming) {
      this.absorb();
      channel.ask('l', id, { absorbed: true });
    }
    unclaim(flagOf(id));
  }

  // absorb is where a termination that is on its way may come. It may come just before,
  // too, and then ends the command that waits here.
  absorb() {
    this.post('Runtime.evaluate', { expression: '$$cellard.absorb()' }, () => {});
  }

  // post is the session's. It writes its message as JSON in the user's realm, where
  // toJSON may be anything, and the first places of an array setters: an evaluated cell has
  // them back at its begin (mend).
  post(method, params, answer) {
    const hidden = [];
    for (const [owner, key] of disturbing) {
      const property = Reflect.getOwnPropertyDescriptor(owner, key);
      if (property && Reflect.deleteProperty(owner, key)) hidden.push([owner, key, property]);
    }
    this.mend = () => {
      for (const [owner, key, property] of hidden.splice(0)) Reflect.defineProperty(owner, key, property);
    };
    if (hidden.length && params.replMode) params.expression = `$$cellard.mend();${params.expression}`;
    try {
      this.session ||= connect();
      this.session.post(method, params, answer);
    } finally {
      this.mend();
    }
  }

  // interrupt ends a cell that waits. One that computes does not come here: it is
  // terminated from outside (watch.go).
  interrupt(id) {
    const cell = this.cell;
    if (cell && cell.id === id) {
      cell.stopped = true;
      this.end(cell, null, true);
    } else if (id > this.ended) {
      // What was to run it came before, and was terminated with a callback.
      if (claimed(flagOf(id))) this.settle(id);
      this.ended = id;
      status.newest = id;
      channel.send('x', id, JSON.stringify({ status: 'interrupted' }));
    }
  }

  // exit ends the running cell as process.exit does a program. It does not return there.
  exit(code) {
    const cell = state.current;
    if (cell === this.cell) {
      cell.exit = code;
      setImmediate(() => this.end(cell, null));
    } else if (!cell.dead) {
      channel.text('e', cell.id, `process.exit(${code}) in a callback of a finished cell: its timers are stopped, the session goes on\n`);
    }
    cell.dead = true;
    this.own.post('Runtime.terminateExecution');
    for (;;);
  }

  // signal ends the running cell as a signal ends a program, with the status that a shell
  // tells of it.
  signal(name, status) {
    const { cell } = this;
    if (!cell || cell.dead) return;
    channel.text('e', cell.id, `${name}\n`);
    cell.exit = status;
    cell.dead = true;
    setImmediate(() => this.end(cell, null));
  }

  // crash ends the running cell with an error that nothing caught, as it would end a
  // program. That of a finished cell is told there.
  crash(cell, error) {
    if (cell.dead) return;
    const told = this.tell(error);
    if (cell === this.cell) {
      cell.crashed = told;
      cell.dead = true;
      setImmediate(() => this.end(cell, null));
    } else {
      // What no cell is known to have caused is told to the newest.
      channel.text('e', cell.id || this.newest, `Uncaught error in a callback:\n${told.traceback.join('\n')}\n`);
    }
  }

  // reject tells of a promise that failed and that nobody waits for. Whose it is its
  // trace says, at the end: by the time that Node tells of it another cell may run.
  reject(reason) {
    const told = this.tell(reason);
    let cell = state.current;
    for (const line of told.traceback) {
      const match = /^ {4}at .*?(cell-\d+\.[jt]s):\d+:\d+\)?$/.exec(line);
      cell = (match && this.positions.cell(match[1])) || cell;
    }
    if (!cell.dead) channel.text('e', cell.id || this.newest, `Unhandled rejection of a promise:\n${told.traceback.join('\n')}\n`);
  }

  // tell describes an error where that can be stopped: it runs the user's code.
  tell(error) {
    this.untold = error;
    this.told = undefined;
    this.post('Runtime.evaluate', { expression: '$$cellard.describe()', silent: true }, () => {});
    this.untold = undefined;
    return this.told || { name: 'Error', value: 'an error that can not be shown', traceback: ['an error that can not be shown'] };
  }

  end(cell, error, asked = false, status = 'ok') {
    if (this.cell !== cell || !this.leave(cell, asked)) return;
    this.cell = undefined;
    const { stopped } = cell;
    if (stopped || cell.exit !== undefined || cell.crashed) {
      cell.dead = true;
      closeSince(cell);
    }
    state.running = null;
    cell.before = undefined;
    if (cell.dead) state.current = state.idle;
    for (const f of this.ending) f(cell);
    if (cell.surroundings) cell.surroundings.leave();
    let answer = { status };
    if (stopped) answer = { status: 'interrupted' };
    else if (cell.exit !== undefined) {
      if (cell.exit !== 0) answer = { status: 'error', error: { name: 'ExitStatus', value: String(cell.exit), traceback: [`process.exit(${cell.exit})`] } };
    } else if (cell.crashed || error) answer = { status: 'error', error: cell.crashed || error };
    this.ended = cell.id;
    channel.send('x', cell.id, JSON.stringify(answer));
    this.session ||= connect();
  }
}

// flagOf is the name of the global by which a cell is claimed.
const flagOf = (id) => `stop${id}`;

// unclaim takes it away, by the realm's global object: that has it of its own, besides the
// object that it was made of, where realm.js reads it.
const unclaim = (flag) => delete globalThis[flag];

// connect makes a session. Its constructor in Node 20 iterates an array.
function connect() {
  return whole(() => {
    const session = new inspector.Session();
    session.connect();
    return session;
  });
}

const internal = (error) => ({ name: 'InternalError', value: `the kernel failed: ${error.message}`, traceback: String(error.stack).split('\n') });

// compiles reports whether Node takes code that the parser doesn't know.
function compiles(cell) {
  const vm = require('node:vm');
  try {
    new vm.Script(`(async () => {${cell.code}\n})`);
    return true;
  } catch {
    return false;
  }
}

// redeclared is the name that an early error says is declared already.
function redeclared(details) {
  const text = (details.exception && details.exception.description) || '';
  const match = /^SyntaxError: Identifier '([^']+)' has already been declared/.exec(text);
  return match && match[1];
}

function ownGlobal(name) {
  const property = Reflect.getOwnPropertyDescriptor(main, name);
  return property && !property.configurable;
}

module.exports = { Cells };
