'use strict';
// Puts the kernel together, says hello, and takes commands.

const { Worker } = require('node:worker_threads');
const channel = require('./channel.js');
const { Cells } = require('./cells.js');
const { keepPop } = require('./guard.js');

const shared = new Int32Array(new SharedArrayBuffer(8));
const worker = new Worker(require('source:watch.js'), {
  eval: true,
  stdin: false,
  execArgv: [],
  env: {},
  workerData: { shared, patience: 40, again: 120, asks: 6, lost: 1000, signal: 'SIGKILL' },
  resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 1 },
});
worker.unref();

const cells = new Cells(shared);
require('./async.js').install(main);
require('./callbacks.js').install(main);
require('./input.js').install();
require('./output.js').install(main, cells);
require('./globals.js').install(main, cells);
require('./signals.js').install(cells);

const answers = require('./complete.js').make(main, cells);
const variables = require('./variables.js').make(cells);
const commands = {
  __proto__: null,
  run: (m) => cells.start(m),
  interrupt: (m) => cells.interrupt(m.id),
  input: (m) => require('./input.js').answer(m),
  complete: (m) => reply(m, () => answers.complete(m.code, m.cursor)),
  inspect: (m) => reply(m, () => answers.inspect(m.code, m.cursor, m.detail)),
  variables: (m) => reply(m, () => variables.variables()),
  isComplete: (m) => reply(m, () => answers.isComplete(m.code)),
};

function reply(message, make) {
  let answer;
  try {
    answer = make();
  } catch (error) {
    answer = { failed: String(error) };
  }
  channel.send('a', 0, JSON.stringify({ ...answer, n: message.n }));
}

channel.listen((message) => commands[message.op](message), () => process.reallyExit(0));
worker.once('message', () => keepPop(main, hello));

function hello() {
  variables.begin();
  channel.send('h', 0, JSON.stringify({ version: process.version }));
}
