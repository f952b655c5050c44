'use strict';
// Completions, inspection, and whether code is complete. What they look at they look
// at without side effects: the inspector refuses to run what has any.

const { inspect } = require('node:util');
const { parse } = require('./rewrite.js');

const WORD = /[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;
const MATCHES = 1000;
// copied is an array of the user's realm as one of this.
const copied = (list) => {
  const own = [];
  for (let i = 0; i < list.length; i++) own.push(list[i]);
  return own;
};
const builtins = copied(require('node:module').builtinModules);
const KEYWORDS = ('async await break case catch class const continue debugger default delete do else export extends false ' +
  'finally for from function if import in instanceof let new null of return static super switch this throw true try ' +
  'typeof undefined var void while with yield').split(' ');

function make(main, cells) {
  // look evaluates without side effects; undefined where that can't be.
  const look = (expression) => {
    let found;
    cells.post('Runtime.evaluate', { expression, throwOnSideEffect: true, silent: true, timeout: 500, objectGroup: 'look' }, (failed, answer) => {
      if (!failed && !answer.exceptionDetails) found = answer.result;
    });
    return found;
  };
  const release = () => cells.post('Runtime.releaseObjectGroup', { objectGroup: 'look' }, () => {});

  // members are the names of an object's properties, own ones first.
  const members = (object) => {
    const names = [];
    const kinds = [];
    if (object === undefined) return { names, kinds };
    let id = object.objectId;
    if (!id) {
      const wrapper = { string: 'String', number: 'Number', boolean: 'Boolean', bigint: 'BigInt', symbol: 'Symbol' }[object.type];
      const prototype = wrapper && look(`${wrapper}.prototype`);
      if (!prototype || !prototype.objectId) return { names, kinds };
      id = prototype.objectId;
    }
    for (let depth = 0; id && depth < 20 && names.length < MATCHES; depth++) {
      let next;
      cells.post('Runtime.getProperties', { objectId: id, ownProperties: true }, (failed, answer) => {
        if (failed) return;
        for (const p of copied(answer.result)) {
          if (p.symbol || !/^[\p{ID_Start}$_]/u.test(p.name) || names.includes(p.name)) continue;
          if (p.name === '__proto__' || names.length >= MATCHES) continue;
          names.push(p.name);
          kinds.push(kindOf(p.value));
        }
        const proto = copied(answer.internalProperties || []).find((p) => p.name === '[[Prototype]]');
        next = proto && proto.value && proto.value.objectId;
      });
      id = next;
    }
    return { names, kinds };
  };

  const globals = () => {
    let lexical = [];
    cells.post('Runtime.globalLexicalScopeNames', {}, (failed, answer) => {
      if (!failed) lexical = copied(answer.names);
    });
    const own = members(look('globalThis'));
    const names = [...lexical, ...own.names, ...KEYWORDS].filter((name) => !name.startsWith('$$cellard'));
    const kinds = [...lexical.map(() => 'instance'), ...own.kinds, ...KEYWORDS.map(() => 'keyword')];
    return { names, kinds };
  };

  function complete(code, cursor) {
    const points = Array.from(code);
    const before = points.slice(0, cursor).join('');
    const quoted = /(?:require\(\s*|from\s+|import\s+|import\(\s*)(['"])([\w:./@-]*)$/.exec(before);
    if (quoted) {
      const names = builtins.filter((name) => !name.startsWith('_')).flatMap((name) => [name, name.startsWith('node:') ? name : `node:${name}`]);
      return answer(new Set(names), quoted[2], cursor, () => 'module');
    }
    const word = (WORD.exec(before) || [''])[0];
    const rest = before.slice(0, before.length - word.length);
    let found;
    if (/\?\.$|[^.\d]\.$|^\.$|\d\.\.$/.test(rest)) {
      const object = chain(rest.replace(/\??\.$/, ''));
      found = object ? members(look(object)) : { names: [], kinds: [] };
    } else {
      found = globals();
    }
    release();
    return answer(found.names, word, cursor, (name) => found.kinds[found.names.indexOf(name)]);
  }

  function answer(names, word, cursor, kind) {
    const matches = [...new Set(names)].filter((name) => name.startsWith(word)).slice(0, MATCHES);
    return { matches, start: cursor - Array.from(word).length, end: cursor, types: matches.map(kind) };
  }

  function inspectAt(code, cursor, detail) {
    const points = Array.from(code);
    let at = cursor;
    while (at < points.length && /[\p{ID_Continue}$]/u.test(points[at])) at++;
    let before = points.slice(0, at).join('');
    if (!WORD.test(before)) before = before.replace(/[^\p{ID_Continue}$.]*\(?[^()]*$/u, ''); // in a call: the function
    const expression = chain(before);
    const object = expression && look(`(${expression})`);
    let found;
    if (object && object.type !== 'undefined') {
      // What the inspector says of it, and its own text where that is a function.
      const text = object.type === 'function' ? signature(object.description, detail) : plain(object);
      found = { 'text/plain': `${expression}: ${object.subtype || object.className || object.type}\n${text}` };
    }
    release();
    return { found: found !== undefined, data: found || {} };
  }

  const plain = (object) => {
    if (!object.objectId) return object.description ?? inspect(object.value, { colors: false });
    const names = members(object).names.slice(0, 30);
    return `${object.description}${names.length ? `\n${names.join(', ')}` : ''}`;
  };

  return { complete, inspect: inspectAt, isComplete };
}

const signature = (text, detail) => (detail > 0 || text.length < 400 ? text : text.slice(0, text.indexOf('{') + 1) + ' … }');

const kindOf = (value) => (!value ? 'property' : value.type === 'function' ? (/^class\b/.test(value.description) ? 'class' : 'function') : 'instance');

// chain is the expression of names, members and literals that ends the text.
function chain(text) {
  const match = /(?:(?:[\p{ID_Start}$_][\p{ID_Continue}$]*|\]|\)|["'`])(?:\s*\??\.\s*[\p{ID_Start}$_][\p{ID_Continue}$]*|\[(?:\d+|'[^'\\]*'|"[^"\\]*")\])*)$/u.exec(text);
  if (!match) return undefined;
  let found = match[0];
  if (/^[\])"'`]/.test(found)) found = literal(text, match.index) + found.slice(1);
  return found || undefined;
}

// literal is a string or an array before a dot; of anything else nothing.
function literal(text, end) {
  const last = text[end];
  if (last === ')') return '';
  const open = last === ']' ? '[' : last;
  const start = text.lastIndexOf(open, end - 1);
  if (start < 0 || (open === '[' && /[\p{ID_Continue}$)\]]\s*$/u.test(text.slice(0, start)))) return '';
  return open === '[' ? '[]' : '""';
}

// isComplete tells whether code can be run as it is.
function isComplete(code) {
  try {
    parse(code);
    return { status: 'complete', indent: '' };
  } catch (error) {
    const end = code.trimEnd().length;
    const open = error.pos >= end || /^Unterminated (template|comment)/.test(error.message);
    if (!open) return { status: 'invalid', indent: '' };
    const last = code.slice(code.lastIndexOf('\n') + 1);
    const indent = /^[ \t]*/.exec(last)[0] + (/[{([]\s*$/.test(last) ? '  ' : '');
    return { status: 'incomplete', indent };
  }
}

module.exports = { make };
