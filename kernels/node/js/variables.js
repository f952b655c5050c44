'use strict';
// The session's variables, looked at without running code of the cells': the inspector
// refuses what has a side effect, and what it says of a value is V8's own.

const MOST = 1000; // variables
const TEXT = 120; // code units of a text
const WAIT = 1000; // milliseconds for all of them
const SIZED = new Set(['array', 'typedarray', 'map', 'set', 'arraybuffer']);
const { now } = Date;

// copied is an array of the user's realm as one of this.
function copied(list) {
  const own = [];
  for (let i = 0; list && i < list.length; i++) own.push(list[i]);
  return own;
}

function make(cells) {
  const look = (expression) => {
    let found;
    const options = { expression, throwOnSideEffect: true, silent: true, timeout: 500, generatePreview: true, objectGroup: 'variables' };
    cells.post('Runtime.evaluate', options, (failed, answer) => {
      if (!failed && !answer.exceptionDetails) found = answer.result;
    });
    return found;
  };

  // properties are the names of the global object's own properties.
  const properties = () => {
    let names = [];
    cells.post('Runtime.getProperties', { objectId: cells.root(), ownProperties: true }, (failed, answer) => {
      if (!failed) names = copied(answer.result).filter((p) => !p.symbol).map((p) => p.name);
    });
    return names;
  };
  const before = new Set();

  // begin is called before the first cell.
  function begin() {
    for (const name of properties()) before.add(name);
  }

  function variables() {
    const set = new Set(cells.kinds.keys());
    for (const name of properties()) if (!before.has(name)) set.add(name);
    const names = [...set].filter((name) => /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u.test(name) && !name.startsWith('$$cellard')).sort();
    const until = now() + WAIT;
    const data = names.slice(0, MOST).map((name) => (now() < until ? describe(name) : { name, type: '' }));
    cells.post('Runtime.releaseObjectGroup', { objectGroup: 'variables' }, () => {});
    return { data, total: names.length };
  }

  function describe(name) {
    const length = look(`typeof ${name} === 'string' ? ${name}.length : -1`);
    if (!length) return { name, type: 'unknown' }; // not set yet, or a getter of a cell's
    if (length.value >= 0) return { name, type: 'string', size: length.value, preview: string(name, length.value) };
    const value = look(name);
    if (!value) return { name, type: 'unknown' };
    const size = SIZED.has(value.subtype) ? Number((/\((\d+)\)$/.exec(value.description) || [])[1]) : NaN;
    return { name, type: typeOf(value), size: Number.isNaN(size) ? null : size, preview: cut(text(value)) };
  }

  // string is the beginning of one: the whole may have 100 MB.
  function string(name, length) {
    const found = length <= TEXT ? look(name) : look(`${name}.slice(0, ${TEXT})`);
    return found && typeof found.value === 'string' ? cut(JSON.stringify(found.value)) : '';
  }

  return { begin, variables };
}

function typeOf(value) {
  if (value.subtype === 'null') return 'null';
  if (value.subtype === 'proxy') return 'Proxy'; // of what is for its handler to say
  if (value.type === 'function') return /^class\b/.test(value.description) ? 'class' : 'function';
  return value.type === 'object' ? String(value.className || 'object').slice(0, TEXT) : value.type;
}

function text(value) {
  switch (value.type) {
    case 'function':
      return value.description.slice(0, (value.description.indexOf('{') + 1 || TEXT + 1) - 1).trim();
    case 'object':
      break;
    default:
      return value.description ?? String(value.value);
  }
  if (!value.preview || value.subtype === 'proxy') return value.subtype === 'null' ? 'null' : '';
  if (value.subtype === 'date' || value.subtype === 'regexp') return value.description;
  const more = value.preview.overflow ? ', …' : '';
  if (value.preview.entries) {
    const entries = copied(value.preview.entries).map((e) => (e.key ? `${item(e.key)} => ` : '') + item(e.value));
    return `{${entries.join(', ')}${more}}`;
  }
  const list = SIZED.has(value.subtype);
  const items = copied(value.preview.properties).map((p) => (list && /^\d+$/.test(p.name) ? '' : `${p.name}: `) + item(p));
  return list ? `[${items.join(', ')}${more}]` : `{${items.join(', ')}${more}}`;
}

// item is one of a preview, a property's or an entry's.
const item = (p) => {
  const said = String(p.value ?? p.description ?? p.type);
  return p.type === 'string' ? JSON.stringify(said) : said;
};

const cut = (s) => (s.length <= TEXT ? s : `${s.slice(0, TEXT - 1)}…`);

module.exports = { make };
