package node

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// Names persist, and may be declared again in any other way.
func TestDeclarations(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		kinds := map[string]string{
			"let": "let it = %", "const": "const it = %", "var": "var it = %", "function": "function it() { return % }",
			"class": "class it { static v = % }", "import": "import { sep as it } from 'node:path'", "destructuring": "const { it } = { it: % }",
		}
		values := map[string]string{"function": "it()", "class": "it.v", "import": "it"}
		for first := range kinds {
			for second := range kinds {
				s.run(strings.ReplaceAll(kinds[first], "%", "1")).ok()
				value := values[second]
				if value == "" {
					value = "it"
				}
				want := "2"
				if second == "import" {
					want = "'/'"
				}
				if s.run(strings.ReplaceAll(kinds[second], "%", "2")).ok(); t.Failed() {
					t.Fatalf("%s after %s", second, first)
				}
				if s.run(value).text(want); t.Failed() {
					t.Fatalf("%s after %s", second, first)
				}
				s.run(value).text(want)
			}
		}
		s.run("let a = 1, b = 2; var c = 3").ok()
		s.run("var a = 10, d = 4; let c = 30, b").ok()
		s.run("[a, b, c, d]").text("[ 10, undefined, 30, 4 ]")
		s.run("const k = 1").ok()
		s.run("for (var k = 0; k < 3; k++) ; for (var a of [7]) ; for (var d in { x: 1 }) ; if (a) var c = 5; else var c = 6;\n[k, a, c, d]").text("[ 3, 7, 5, 'x' ]")
		s.run("let f = 1").ok()
		s.run("f(2); function f(n) { return n < 2 ? 1 : n * f(n - 1) }\n[f(5), f.name]").text("[ 120, 'f' ]")
		s.run("if (true) { function block() { return 8 } }").ok()
		s.run("let block = 9; block").text("9")
		s.run("let broken = (() => { throw new Error('no') })()").failed("Error", "no")
		s.run("let broken = 3; broken").text("3")
		s.run("let x = 1; let x = 2").failed("SyntaxError", "already been declared")
		s.run("async function later() { return await 5 } \n await later()").text("5")
		s.run("export const e = 6; export default function g() { return 7 }\n[e, g()]").text("[ 6, 7 ]")
		s.run("export default 5 + 1").ok()
		s.run("'use strict'\nundeclared = 1").failed("ReferenceError", "undeclared")
		s.run("'use strict'\nimport { join } from 'path'; undeclared = 1").failed("ReferenceError", "undeclared")
		s.run("#!/usr/bin/env node\njoin('a', 'b')").text("'a/b'")
		s.run("#!/usr/bin/env node\nimport os from 'os'\ntypeof os.cpus").text("'function'")
	})
}

func TestValues(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		for _, c := range []struct{ code, want string }{
			{"1 + 1", "2"},
			{"1 + 1;", "2"},
			{"1 + 1; // two", "2"},
			{"1 + 1 // two\n;", "2"},
			{"(1, 2)", "2"},
			{"1, 2", "2"},
			{"({ a: 1 })", "{ a: 1 }"},
			{"'猫'", "'猫'"},
			{"undefined", ""},
			{"null", "null"},
			{"", ""},
			{"// nothing", ""},
			{"let y = 5", ""},
			{"y = 6", "6"},
			{"if (y) { 7 }", ""},
			{"await Promise.resolve(8)", "8"},
			{"Promise.resolve(9)", "Promise { 9 }"},
			{"x => x", "[Function (anonymous)]"},
			{"class B {}", ""},
			{"new (class C { d = 1 })", "C { d: 1 }"},
			{"10n ** 30n", "1000000000000000000000000000000n"},
			{"`a${await 1}b`", "'a1b'"},
			{"let z = 1\n;[z].map(x => x + 1)", "[ 2 ]"},
			{"do y; while (false) 3", "3"},
			{"new Proxy({}, { get() { throw 1 } })", "{}"},
			{"({ get a() { throw 1 } })", "{ a: [Getter] }"},
			{"import.meta.filename === __filename.replace('.js', '.mjs')", "true"},
			{"(await Promise.all([1, 2].map(async x => await x * 2)))", "[ 2, 4 ]"},
			{"let sum = 0; for await (const v of [1, Promise.resolve(2)]) sum += v; sum", "3"},
			{"async function* gen() { yield 1; yield 2 }; let all = []; for await (const v of gen()) all.push(v); all", "[ 1, 2 ]"},
			{"try { await Promise.reject(new Error('x')) } catch (e) { e.message }\ntry { await Promise.reject(4) } catch (e) { sum = e } sum", "4"},
			{"let closed = false; async function* g2() { try { yield 1; yield 2 } finally { closed = true } }; for await (const v of g2()) break; closed", "true"},
		} {
			if s.run(c.code).text(c.want); t.Failed() {
				t.Fatalf("of %s", c.code)
			}
		}
		s.run("({ [require('util').inspect.custom]() { throw new Error('no') } })").ok()
		silent := s.run("1; console.log('out')\n2", func(c *kernel.Cell) { c.Silent = true })
		silent.text("").out("out\n", "")
	})
}

func TestErrors(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		r := s.run("// first\nfunction g(a) {\n  throw new TypeError('boom')\n}\nawait 1; g(2)")
		r.failed("TypeError", "boom", "cell-1.js:3", "    at g (cell-1.js:3:9)", "    at cell-1.js:5:10", "  throw new TypeError('boom')\n        ^")
		if e := told(r.err); strings.Contains(e, "node:") || strings.Contains(e, "cellard:") || strings.Contains(e, "$$") {
			t.Errorf("not the user's: %s", e)
		}
		s.run("let = = 1").failed("SyntaxError", "cell-2.js:1", "let = = 1\n      ^")
		s.run("1 +").failed("SyntaxError", "Unexpected token")
		s.run("async function deep() { await null; throw new RangeError('far') }\nasync function outer() {\n  await deep()\n}\nawait outer()").
			failed("RangeError", "at deep (cell-4.js:1:43)", "at async outer (cell-4.js:3:")
		s.run("throw 'text'").failed("Error", "'text'")
		s.run("throw null").failed("Error", "null")
		s.run("throw undefined").failed("Error", "undefined")
		s.run("throw { a: 1 }").failed("Error", "{ a: 1 }")
		s.run("class Own extends Error { constructor(m) { super(m); this.name = 'Own' } }; throw new Own('mine')").failed("Own", "mine")
		s.run("throw new Error('outer', { cause: new TypeError('inner') })").failed("Error", "Caused by:", "TypeError: inner")
		s.run("await Promise.any([Promise.reject(new Error('one')), Promise.reject(new Error('two'))])").failed("AggregateError", "one", "two")
		s.run("require('no-such-package')").failed("Error", "Cannot find module 'no-such-package'")
		s.run("import x from 'no-such-package'").failed("Error", "Cannot find package 'no-such-package'")
		s.run("import { nothing } from 'node:path'").failed("SyntaxError", "nothing")
		s.run("JSON.parse('{')").failed("SyntaxError", "JSON")
		s.run("(function f() { f() })()").failed("RangeError", "call stack")
		s.run("nowhere").failed("ReferenceError", "nowhere is not defined")
		s.run("const e = new Error('x'); e.stack = { toString() { throw 1 } }; throw e").failed("Error", "x")
		s.run("throw new Proxy(new Error('x'), { get() { throw new Error('trap') } })").failed("Error")
		s.run("throw Object.assign(new Error('x'), { name: { toString() { throw 1 } } })").failed("Error", "x")
		s.run("g(1)").failed("TypeError", "at g (cell-1.js:3:9)", "at cell-21.js:1:1")
		s.run("$$cellardx = 1").failed("SyntaxError", "kernel's own")
		s.run("1").text("1")
	})
}

func TestOutput(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("console.log('héllo 猫 🎉'); console.error('b'); console.warn('c'); console.info('d'); console.debug('e')").out("héllo 猫 🎉\nd\ne\n", "b\nc\n")
		s.run("console.table([{ a: 1 }])").text("")
		s.run("process.stdout.write(Buffer.from('猫').subarray(0, 2)); process.stdout.write(Buffer.from('猫').subarray(2)); process.stderr.write(Buffer.from([0xff]))").
			out("猫", "\uFFFD")
		s.run("process.stdout.write('6869', 'hex'); process.stdout.end('!'); console.log('?')").out("hi!?\n", "")
		s.run("console.log('\\ud800x')").out("\uFFFDx\n", "")
		cp := "const { execSync, spawnSync } = require('child_process');"
		s.run(cp+"console.log(1); execSync('echo 2; echo e >&2', { stdio: 'inherit' }); console.log(3); spawnSync('echo', ['4'], { stdio: 'inherit' }); console.log(5); require('fs').writeSync(1, '6\\n'); console.log(7)").
			out("1\n2\n3\n4\n5\n6\n7\n", "e\n")
		s.run("const child = require('child_process').spawn('sh', ['-c', 'echo 2; printf \"\\\\377\\\\376\"'], { stdio: 'inherit' }); await new Promise(r => child.on('exit', r)); console.log('3')").
			out("2\n\uFFFD\uFFFD3\n", "")
		s.run("execSync('echo captured').toString()").text("'captured\\n'")
		r := s.run("execSync('yes x | head -c 2000000', { stdio: 'inherit' })")
		if got := r.ok().Stream("stdout"); len(got) != 2000000 {
			t.Errorf("%d bytes of a child's output", len(got))
		}
		r = s.run("for (let i = 0; i < 20000; i++) console.log(i); console.log('x'.repeat(3e6) + '🎉'.repeat(1e5))")
		if got := r.ok().Stream("stdout"); len(got) != 108890+3000000+400000+1 {
			t.Errorf("%d bytes of output", len(got))
		}
		if n := len(r.Messages()); n > 10000 {
			t.Errorf("%d messages for 20,000 lines", n)
		}
		s.run("process.stdout.write('once', () => console.log('called')); await new Promise(r => setTimeout(r, 20))").out("oncecalled\n", "")
		s.run("new (require('worker_threads').Worker)('console.log(\"of a thread\")', { eval: true }).on('exit', () => done()); let done; await new Promise(r => done = r)").out("of a thread\n", "")
	})
}

// What runs after its cell has ended belongs to it, and costs nobody else anything.
func TestLate(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		first := s.run(`setTimeout(() => { console.log('late'); setTimeout(() => console.log('later'), 1) }, 50)
setTimeout(() => { throw new Error('late error') }, 60)
setTimeout(() => { Promise.reject(new Error('late rejection')) }, 70)
setTimeout(async () => { await null; console.log('after await'); await new Promise(r => setTimeout(r, 1)); console.log('more') }, 80)
const event = new (require('events'))(); event.on('x', () => console.log('event'))
require('fs').stat('/', () => setTimeout(() => console.log('file'), 90))
setTimeout(() => { process.exit(3) }, 150)
setTimeout(() => { console.log('never') }, 300)`)
		first.ok()
		s.run("console.log('mine'); event.emit('x'); for (let i = 0; i < 40; i++) { await new Promise(r => setTimeout(r, 10)); console.log(i) }; 'end'").
			text("'end'").out("mine\n"+numbers(40), "")
		out, errs := first.Stream("stdout"), first.Stream("stderr")
		for _, want := range []string{"late\n", "later\n", "after await\n", "more\n", "event\n", "file\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in %q", want, out)
			}
		}
		for _, want := range []string{"Uncaught error in a callback:", "Error: late error", "Unhandled rejection of a promise:", "late rejection", "process.exit(3)"} {
			if !strings.Contains(errs, want) {
				t.Errorf("no %q in %q", want, errs)
			}
		}
		if strings.Contains(out, "never") {
			t.Error("timers went on after process.exit")
		}
		s.run("1").text("1")
	})
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strconv.Itoa(i) + "\n")
	}
	return b.String()
}

func TestExitAndCrash(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("let x = 41").ok()
		s.run("console.log(1); process.exit(3); console.log(2)").failed("ExitStatus", "3").out("1\n", "")
		s.run("try { process.exit() } finally { console.log('no') }").ok().out("", "")
		s.run("setTimeout(() => process.exit(4), 10); await new Promise(() => {})").failed("ExitStatus", "4")
		s.run("process.exitCode = 5; process.exit()").failed("ExitStatus", "5")
		s.run("setTimeout(() => { throw new TypeError('in a timer') }, 10); await new Promise(() => {})").failed("TypeError", "in a timer", "cell-6.js:1:26")
		s.run("require('fs').stat('/', () => { throw new TypeError('in a callback') }); await new Promise(() => {})").failed("TypeError", "in a callback")
		s.run("new (require('events'))().emit('error', new Error('nobody listens'))").failed("Error", "nobody listens")
		s.run("Promise.reject(new Error('unheard')); await new Promise(r => setTimeout(r, 20)); x").text("41")
		s.run("process.on('uncaughtException', e => console.log('caught', e.message)); setTimeout(() => { throw new Error('x') }, 1); await new Promise(r => setTimeout(r, 50))").ok().out("caught x\n", "")
		s.run("process.removeAllListeners(); setTimeout(() => { throw new Error('x') }, 1); await new Promise(r => setTimeout(r, 100))").failed("Error", "x")
		s.run("Promise.reject(new Error('unheard')); await new Promise(r => setTimeout(r, 20)); x")
		s.run("x").text("41")
	})
}

func TestSurroundings(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		dir, other := t.TempDir(), t.TempDir()
		before, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		in := func(env map[string]string, cwd string) func(*kernel.Cell) {
			return func(c *kernel.Cell) { c.Env, c.Cwd = env, cwd }
		}
		value := "it's \"q\"\n$x 猫"
		r := s.run("[process.env.A, process.cwd(), require('child_process').execSync('printf %s \"$A\"; pwd').toString()]", in(map[string]string{"A": value}, dir))
		if got := r.ok().Shown("execute_result")[0]["text/plain"].(string); strings.Count(got, "$x 猫") != 2 || strings.Count(got, dir) != 2 {
			t.Error(got)
		}
		s.run("[process.env.A, process.cwd()]").text("[ undefined, '" + before + "' ]")
		s.run("process.env.A = 'own'; process.chdir('"+other+"')", in(map[string]string{"A": "x", "B": "y"}, dir)).ok()
		s.run("[process.env.A, process.env.B, process.cwd() === '" + other + "']").text("[ 'own', undefined, true ]")
		s.run("1", in(nil, "/no/such/directory")).failed("InvalidDirectory", "/no/such/directory")
		s.run("1", in(map[string]string{"A=B": ""}, "")).failed("Error", "A=B")
		s.run("new Date(0).getHours() + ' ' + new Date(0).getTimezoneOffset()", in(map[string]string{"TZ": "Asia/Tokyo"}, "")).text("'9 -540'")
		s.within(soon, "while (true) {}", in(map[string]string{"A": "x"}, dir)).stopped()
		s.run("[process.env.A, process.cwd() === '" + other + "']").text("[ 'own', true ]")
		s.run("process.env.A", in(map[string]string{"A": ""}, "")).text("''")
	})
}

func TestModules(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		dir := t.TempDir()
		for name, content := range map[string]string{
			"node_modules/c/package.json": `{"main":"main.js"}`,
			"node_modules/c/main.js":      "module.exports = { one: 1 }",
			"node_modules/e/package.json": `{"type":"module","exports":{"import":"./e.js"}}`,
			"node_modules/e/e.js":         "export const two = 2; export default await Promise.resolve('d')",
			"own.mjs":                     "export const three = 3; export const url = import.meta.url",
			"own.cjs":                     "exports.four = 4",
			"data.json":                   `{"five": 5}`,
		} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s.run("process.chdir('" + dir + "')").ok()
		s.run("import c, { one } from 'c'\nimport d, { two } from 'e'\nimport * as own from './own.mjs'\nimport './own.cjs'\n[c.one, one, d, two, own.three]").text("[ 1, 1, 'd', 2, 3 ]")
		s.run("const { one: again } = require('c'); const { four } = require('./own'+'.cjs'); [again, four, require('./data.json').five]").text("[ 1, 4, 5 ]")
		s.run("import data from './data.json' with { type: 'json' }\ndata.five").text("5")
		s.run("(await import('./own.mjs')).three").text("3")
		s.run("const load = async name => (await import(name)).two; await load('e')").text("2")
		s.run("import { createRequire } from 'node:module'\ncreateRequire(import.meta.url)('c').one").text("1")
		s.run("import { default as x, 'two' as y } from 'e'; [x, y]").text("[ 'd', 2 ]")
		s.run("[require.main === module, typeof exports, require.resolve('c') === '" + filepath.Join(dir, "node_modules/c/main.js") + "']").text("[ true, 'object', true ]")
		s.run("import { readFile } from 'fs/promises'\nimport { setTimeout as sleep } from 'timers/promises'\nawait sleep(1); (await readFile('data.json', 'utf8')).length").text("11")
	})
}

// A signal ends the cell, as it would end a program, and not the session.
func TestSignals(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("let x = 41").ok()
		for signal, status := range map[string]string{"SIGHUP": "129", "SIGINT": "130", "SIGTERM": "143", "SIGUSR1": "138", "SIGUSR2": "140"} {
			s.run("process.kill(process.pid, '"+signal+"'); await new Promise(() => {})").failed("ExitStatus", status).out("", signal+"\n")
			s.run("require('child_process').execSync('kill -"+signal[3:]+" $PPID'); await new Promise(() => {})").failed("ExitStatus", status)
			s.run("x").text("41").out("", "")
		}
		s.run("const own = new Promise(r => process.once('SIGINT', () => r('mine'))); process.kill(0, 'SIGINT'); await own").text("'mine'")
		for _, signal := range []string{"SIGCHLD", "SIGCONT", "SIGPIPE", "SIGTSTP", "SIGURG", "SIGWINCH"} {
			s.run("process.kill(process.pid, '" + signal + "')").text("true")
			s.run("x").text("41").out("", "")
		}
		s.run("process.kill(process.pid, 'SIGSTOP')").failed("Error", "would stop the session")
		s.within(soon, "require('child_process').execSync('kill -STOP $PPID'); await new Promise(() => {})").stopped()
		s.run("x + 1").text("42").out("", "")
	})
}
