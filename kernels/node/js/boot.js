'use strict';
// The first script of the kernel's Node. It reads the others from a pipe, and runs
// them in a realm of their own: what a cell does to Array.prototype, JSON or Promise
// is done to the main realm's, and the kernel has its own. main.js and what it
// requires are compiled there; realm.js alone belongs to the user's realm.
(() => {
  const fs = require('node:fs');
  const vm = require('node:vm');
  const sources = { __proto__: null };
  const all = fs.readFileSync(6);
  fs.closeSync(6);
  for (let at = 0; at < all.length; ) { // each after a line with its name and size
    const begin = all.indexOf(10, at) + 1;
    const [name, size] = all.toString('utf8', at, begin - 1).split(' ');
    at = begin + Number(size);
    sources[name] = all.toString('utf8', begin, at);
  }
  const globals = { __proto__: null, process };
  const context = vm.createContext(globals, { name: 'cellard' });
  const modules = { __proto__: null };

  // load runs a file of the kernel once, as CommonJS.
  function load(name) {
    if (modules[name]) return modules[name].exports;
    const module = (modules[name] = { exports: {} });
    const own = name === 'realm.js';
    const run = vm.compileFunction(sources[name], ['require', 'module', 'exports', 'main', 'globals'], {
      filename: 'cellard:' + name,
      parsingContext: own ? undefined : context,
    });
    sources[name] = undefined;
    const find = (id) => (id[0] === '.' ? load(id.slice(2)) : id.startsWith('source:') ? sources[id.slice(7)] : require(id));
    run(find, module, module.exports, globalThis, globals);
    return module.exports;
  }
  // Later: when this script ends, Node puts globals back as they were before it.
  setImmediate(() => load('main.js'));
})();
