'use strict';
// Makes of a cell what Runtime.evaluate can run: imports become imports that work in
// a script, what waits goes through the gate, the last expression's value is kept, and
// a name may be declared again in another way than before. Text is replaced where it
// stands, so that lines stay lines.

const acorn = require('./acorn.js');
const { Edits } = require('./edits.js');

const K = '$$cellard';
const options = {
  ecmaVersion: 'latest',
  sourceType: 'script',
  allowAwaitOutsideFunction: true,
  allowImportExportEverywhere: true,
  allowHashBang: true,
};

// parse is acorn's, which throws a SyntaxError with pos and loc.
const parse = (code) => acorn.parse(code, options);

// rewrite returns {code, edits, names}: names has how each name of the top is declared
// now. kinds has how the names of earlier cells are: 'var' or 'let'.
//
// V8's REPL mode takes a let after a let and a const after a const, but neither after
// the other or after a var, nor a var after them. So const becomes let, and where var
// meets let the name stays what it was first.
function rewrite(code, kinds) {
  const tree = parse(code);
  const edits = new Edits(code);
  const rewriter = new Rewriter(code, tree, edits, kinds);
  rewriter.run();
  return { code: edits.apply(), edits, names: rewriter.names };
}

class Rewriter {
  constructor(code, tree, edits, kinds) {
    Object.assign(this, { code, tree, edits, kinds, names: new Map(), prefix: '', later: [] });
  }

  run() {
    const { code, edits } = this;
    if (code[0] === '#' && code[1] === '!') edits.replace(0, 2, '//');
    const body = this.tree.body;
    for (const statement of body) this.top(statement);
    visit(this.tree, (node, inFunction, parent) => this.node(node, inFunction, parent));
    let last = body.length - 1;
    while (last >= 0 && body[last].type === 'EmptyStatement') last--;
    if (last >= 0 && body[last].type === 'ExpressionStatement') this.result(body[last]);
    if (this.prefix) edits.insert(this.start(), this.prefix, 0);
  }

  // start is where what is put before the cell goes: after the directives, which end
  // where something else begins.
  start() {
    let at = 0;
    for (const statement of this.tree.body) {
      if (!statement.directive) break;
      if (statement !== this.tree.body[this.tree.body.length - 1]) at = statement.end;
    }
    if (at > 0 && this.code[at - 1] !== ';') this.prefix = ';' + this.prefix;
    if (at === 0 && this.code[0] === '#') return this.tree.body.length ? this.tree.body[0].start : this.code.length;
    return at;
  }

  result(statement) {
    const end = this.code[statement.end - 1] === ';' ? statement.end - 1 : statement.end;
    this.edits.insert(statement.start, `${K}.result((`, 1);
    this.edits.insert(end, '))', -1);
  }

  // top is a statement of the cell itself.
  top(node) {
    switch (node.type) {
      case 'ImportDeclaration':
        return this.import(node);
      case 'ExportAllDeclaration':
        return this.sideEffects(node);
      case 'ExportNamedDeclaration':
        if (node.source) return this.sideEffects(node);
        if (!node.declaration) return this.blank(node);
        this.edits.replace(node.start, node.declaration.start, '');
        return this.declaration(node.declaration);
      case 'ExportDefaultDeclaration': {
        const inner = node.declaration;
        this.edits.replace(node.start, inner.start, '');
        if (inner.type.endsWith('Declaration') && inner.id) return this.declaration(inner);
        this.edits.insert(inner.start, '(', 1);
        this.edits.insert(inner.end, ')', -1);
        return undefined;
      }
      default:
        return this.declaration(node);
    }
  }

  declaration(node) {
    if (node.type === 'FunctionDeclaration') this.function(node);
    else if (node.type === 'ClassDeclaration') this.class(node);
    else if (node.type === 'VariableDeclaration' && node.kind !== 'var') this.lexical(node);
  }

  function(node) {
    const name = node.id.name;
    if (this.kind(name) !== 'let') {
      this.names.set(name, 'var');
      return;
    }
    const own = `${K}_${name}`;
    this.edits.replace(node.id.start, node.id.end, own);
    this.prefix += `let ${name} = ${K}.name(${own}, '${name}');`;
    this.names.set(name, 'let');
  }

  class(node) {
    const name = node.id.name;
    if (this.kind(name) !== 'var') {
      this.names.set(name, 'let');
      return;
    }
    this.edits.insert(node.start, `var ${name} = `, 1);
    this.edits.insert(node.end, ';', -1);
  }

  lexical(node) {
    if (node.kind !== 'let' && node.kind !== 'const') return;
    const names = node.declarations.flatMap((d) => bound(d.id));
    if (names.some((name) => this.kind(name) === 'var')) {
      this.assign(node, names, 'let', true);
      return;
    }
    if (node.kind === 'const') this.edits.replace(node.start, node.start + 5, 'let');
    for (const name of names) this.names.set(name, 'let');
  }

  // var is one at any depth outside functions.
  var(node, parent) {
    const names = node.declarations.flatMap((d) => bound(d.id));
    if (!names.some((name) => this.kind(name) === 'let')) {
      for (const name of names) this.names.set(name, 'var');
      return;
    }
    const inFor = parent.type.startsWith('For') && parent.body !== node;
    this.assign(node, names, 'var', !inFor);
  }

  // assign makes assignments of a declaration, whose names are then declared before the
  // cell, as they are known or else as kind.
  assign(node, names, kind, statement) {
    for (const name of names) {
      const known = this.kind(name) || kind;
      if (known === 'var' || kind === 'let') this.prefix += `${known} ${name};`;
      this.names.set(name, known);
    }
    const first = node.declarations[0];
    this.edits.replace(node.start, first.start, statement ? 'void (' : '');
    for (const d of node.declarations) {
      if (!d.init && statement) {
        if (kind === 'var') this.edits.replace(d.start, d.end, '0');
        else this.edits.insert(d.end, ' = undefined', -2);
      }
    }
    if (statement) this.edits.insert(node.declarations[node.declarations.length - 1].end, ')', -1);
  }

  // kind is how a name is declared: by an earlier statement of this cell, or an
  // earlier cell.
  kind(name) {
    return this.names.get(name) || this.kinds.get(name);
  }

  import(node) {
    const source = this.source(node);
    this.blank(node);
    if (!node.specifiers.length) {
      this.prefix += `${source};`;
      return;
    }
    const parts = { let: [], var: [] };
    const wanted = [];
    let space;
    for (const s of node.specifiers) {
      const name = s.local.name;
      const kind = this.kind(name) || 'let';
      this.names.set(name, kind);
      if (s.type === 'ImportNamespaceSpecifier') {
        space = `${kind} ${name} = ${source};`;
        continue;
      }
      const key = s.type === 'ImportDefaultSpecifier' ? 'default' : (s.imported.name ?? s.imported.value);
      wanted.push(key);
      parts[kind].push(`${JSON.stringify(key)}: ${name}`);
    }
    for (const kind of ['let', 'var']) {
      if (!parts[kind].length) continue;
      this.prefix += `${kind} { ${parts[kind].join(', ')} } = ${K}.provides(${source}, ${JSON.stringify(wanted)}, ${JSON.stringify(node.source.value)});`;
    }
    if (space) this.prefix += space;
  }

  sideEffects(node) {
    this.prefix += `${this.source(node)};`;
    this.blank(node);
  }

  source(node) {
    const attributes = (node.attributes || []).map((a) => `${JSON.stringify(a.key.name ?? a.key.value)}: ${a.value.raw}`);
    const settings = attributes.length ? `, { with: { ${attributes.join(', ')} } }` : '';
    return `${K}.restore(await ${K}.gate(${K}.import(${JSON.stringify(node.source.value)}${settings})))`;
  }

  // blank takes a statement out and leaves its lines.
  blank(node) {
    this.edits.replace(node.start, node.end, ';' + this.code.slice(node.start, node.end).replace(/[^\n\r\u2028\u2029]/g, ''));
  }

  // node is any node of the cell.
  node(node, inFunction, parent) {
    switch (node.type) {
      case 'AwaitExpression':
        this.edits.replace(node.start, node.start + 5, `${K}.restore(await ${K}.gate(`);
        this.edits.insert(node.end, '))', -1);
        break;
      case 'ForOfStatement':
        if (!node.await) break;
        this.edits.insert(node.right.start, `${K}.iterate(`, 1);
        this.edits.insert(node.right.end, ')', -1);
        break;
      case 'ImportExpression':
        this.edits.replace(node.start, node.start + 6, `${K}.import`);
        break;
      case 'MetaProperty':
        if (node.meta.name === 'import') this.edits.replace(node.start, node.end, `${K}.meta()`);
        break;
      case 'VariableDeclaration':
        if (node.kind === 'var' && !inFunction) this.var(node, parent);
        break;
      case 'Identifier':
        if (node.name.startsWith(K)) throw Object.assign(new SyntaxError(`names that begin with ${K} are the kernel's own`), { pos: node.start, final: true });
        break;
    }
  }
}

// bound has the names that a pattern binds.
function bound(pattern) {
  switch (pattern && pattern.type) {
    case 'Identifier':
      return [pattern.name];
    case 'ObjectPattern':
      return pattern.properties.flatMap((p) => bound(p.type === 'RestElement' ? p.argument : p.value));
    case 'ArrayPattern':
      return pattern.elements.flatMap(bound);
    case 'AssignmentPattern':
      return bound(pattern.left);
    case 'RestElement':
      return bound(pattern.argument);
    default:
      return [];
  }
}

// visit calls see with each node, whether it is in a function, and its parent; without
// recursion, since code may be nested deeper than a stack.
function visit(root, see) {
  const todo = [[root, false, null]];
  while (todo.length) {
    const [node, inFunction, parent] = todo.pop();
    see(node, inFunction, parent);
    const inside = inFunction || /Function|PropertyDefinition|StaticBlock/.test(node.type);
    for (const key of Object.keys(node)) {
      const value = node[key];
      if (Array.isArray(value)) {
        for (const item of value) if (item && typeof item.type === 'string') todo.push([item, inside, node]);
      } else if (value && typeof value === 'object' && typeof value.type === 'string') {
        todo.push([value, inside, node]);
      }
    }
  }
}

module.exports = { parse, rewrite, visit };
