'use strict';
// Puts the kernel together, says hello, and takes commands.

const inspector = require('node:inspector');
const channel = require('./channel.js');
const { Cells } = require('./cells.js');
const { keepPop } = require('./guard.js');

if (!inspector.url()) inspector.open(0, '127.0.0.1'); // NODE_OPTIONS can have opened it
const cells = new Cells();
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
  begin: () => keepPop(main, hello),
  run: (m) => cells.start(m),
  interrupt: (m) => cells.interrupt(m.id),
  settle: (m) => cells.settle(m.id),
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
// Only what watches the cells from outside can stop them: nothing begins without it.
channel.send('u', 0, JSON.stringify({ url: inspector.url(), realm: realmId() }));

// realmId is the inspector's number of the kernel's realm.
function realmId() {
  let id;
  const session = new inspector.Session();
  session.connect();
  session.on('Runtime.executionContextCreated', ({ params: { context } }) => {
    if (context.name === 'cellard') id = context.id;
  });
  session.post('Runtime.enable');
  session.disconnect();
  return id;
}

function hello() {
  variables.begin();
  channel.send('h', 0, JSON.stringify({ version: process.version }));
}
