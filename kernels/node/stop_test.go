package node

import (
	"testing"
	"time"
)

// soon is when a cell under test is interrupted.
const soon = 400 * time.Millisecond

// Whatever a cell does when it is interrupted: it ends, what was there is still there,
// and nothing of it goes on.
func TestStop(t *testing.T) {
	cases := []struct{ name, code string }{
		{"busy loop", "while (true) {}"},
		{"loop that swallows", "while (true) { try { while (true) {} } catch (e) {} finally { while (true) {} } }"},
		{"await for ever", "await new Promise(() => {})"},
		{"await in a loop", "for (;;) { await new Promise(r => setTimeout(r, 1)); n++ }"},
		{"await at once in a loop", "for (;;) { await 1; n++ }"},
		{"swallowed awaits", "for (;;) { try { await new Promise(r => setTimeout(r, 1)); n++ } catch {} finally { n++ } }"},
		{"async function", "const go = async () => { for (;;) { n++; await new Promise(r => setImmediate(r)) } }; await go()"},
		{"interval", "setInterval(() => { n++ }, 1); await new Promise(() => {})"},
		{"interval that computes", "setInterval(() => { n++; while (true) {} }, 1); await new Promise(() => {})"},
		{"immediate", "const again = () => { n++; setImmediate(again) }; again(); await new Promise(() => {})"},
		{"tick", "const again = () => { n++; process.nextTick(again) }; again(); await new Promise(() => {})"},
		{"microtask", "const again = () => { n++; queueMicrotask(again) }; again(); await new Promise(() => {})"},
		{"then", "const again = () => { n++; return Promise.resolve().then(again) }; await again()"},
		{"timers/promises", "const { setTimeout: sleep } = await import('node:timers/promises'); for (;;) { await sleep(1); n++ }"},
		{"promise interval", "import { setInterval as every } from 'node:timers/promises'\nfor await (const _ of every(1)) n++"},
		{"regex", "/^(a+)+$/.test('a'.repeat(60) + 'b')"},
		{"Atomics.wait", "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)"},
		{"getter of the value", "({ get [Symbol.toStringTag]() { while (true) {} } })"},
		{"inspect of the value", "({ [require('util').inspect.custom]() { while (true) {} } })"},
		{"execSync", "require('child_process').execSync('sleep 300')"},
		{"spawn", "const c = require('child_process').spawn('sleep', ['300']); await new Promise(r => c.on('exit', r))"},
		{"stubborn child", "require('child_process').execSync(`trap '' INT TERM; sleep 300; sleep 300`)"},
		{"file callbacks", "const fs = require('fs'); const again = () => { n++; fs.stat('/', again) }; again(); await new Promise(() => {})"},
		{"file promises", "const again = () => { n++; return require('fs').promises.stat('/').finally(again) }; await again()"},
		{"http", `const http = require('http')
const server = http.createServer((q, a) => a.end('x')).listen(0, '127.0.0.1')
await new Promise(r => server.on('listening', r))
for (;;) { await (await fetch('http://127.0.0.1:' + server.address().port)).text(); n++ }`},
		{"http that computes", `const server2 = require('http').createServer((q, a) => { while (true) { n++ } }).listen(0, '127.0.0.1')
await new Promise(r => server2.on('listening', r))
await fetch('http://127.0.0.1:' + server2.address().port)`},
		{"thread", "new (require('worker_threads').Worker)('for(;;);', { eval: true }); await new Promise(() => {})"},
		{"channel", "const c = new MessageChannel(); c.port1.onmessage = () => { n++; c.port2.postMessage(1) }; c.port2.postMessage(1); await new Promise(() => {})"},
		{"module", "await import('data:text/javascript,for(;;);')"},
		{"recursion", "function deep() { try { deep() } finally { deep() } } deep()"},
		{"emitter", "const e = new (require('events'))(); e.on('x', () => { n++; setImmediate(() => e.emit('x')) }); e.emit('x'); await new Promise(() => {})"},
		{"printing", "for (;;) console.log('x'.repeat(1000))"},
		{"sort", "Array.from({ length: 1e6 }, Math.random).sort(() => { while (true) {} })"},
		{"microtasks left", "(function again() { n++; Promise.resolve().then(again) })(); n"},
		{"ticks left", "(function again() { n++; process.nextTick(again) })(); n"},
		{"function left", "(async function again() { n++; await 1; again() })(); undefined"},
		{"message of an error", "class Slow extends Error { get message() { while (true) {} } } throw new Slow()"},
		{"name of an error", "class Nameless extends Error { get name() { while (true) {} } } throw new Nameless()"},
		{"stack of an error", "throw Object.defineProperty(new Error('x'), 'stack', { get() { while (true) {} } })"},
		{"stack of a promise's error", "await Promise.reject(Object.defineProperty(new Error('x'), 'stack', { get() { while (true) {} } }))"},
		{"prepareStackTrace", "const native = Error.prepareStackTrace; Error.prepareStackTrace = () => { Error.prepareStackTrace = native; while (true) {} }; throw new Error('x')"},
		{"large JSON", "for (;;) JSON.parse(JSON.stringify(Array(1e5).fill({ a: 1 })))"},
	}
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("let x = 41; var n = 0").text("")
		for _, c := range cases {
			s.t = t
			ok := t.Run(c.name, func(t *testing.T) {
				s.t = t
				defer func() { s.t = nil }()
				begin := time.Now()
				s.within(soon, c.code).stopped()
				t.Logf("ended %v after the interrupt", (time.Since(begin) - soon).Round(time.Millisecond))
				s.run("n = 0; await new Promise(r => setTimeout(r, 50)); [x, n]").text("[ 41, 0 ]").out("", "")
			})
			if !ok && s.k.p != nil {
				select {
				case <-s.k.over:
					t.Fatalf("Node has ended: %v", s.k.end())
				default:
				}
			}
		}
		s.t = t
		s.run("process._getActiveHandles().map(h => h.constructor.name)")
	})
}

// What a cell has left for later, when it is stopped as it computes, never begins.
func TestStopBeforeWhatWaits(t *testing.T) {
	laters := []struct{ name, code string }{
		{"timer", "setTimeout(on, 100)"},
		{"interval", "setInterval(on, 50)"},
		{"immediate", "setImmediate(on)"},
		{"tick", "process.nextTick(on)"},
		{"microtask", "queueMicrotask(on)"},
		{"then", "Promise.resolve().then(on)"},
		{"async function", "(async () => { await null; on() })()"},
		{"timers/promises", "require('timers/promises').setTimeout(50).then(on)"},
		{"file callback", "require('fs').stat('/', on)"},
		{"file promise", "(async () => { await require('fs').promises.stat('/'); on() })()"},
		{"end of a child", "require('child_process').spawn('true').on('exit', on).on('close', on)"},
		{"end of a thread", "new (require('worker_threads').Worker)('1', { eval: true }).on('exit', on)"},
		{"callback of a child", "require('child_process').exec('echo x', on)"},
		{"listener", "const server = require('net').createServer(on).listen(0, '127.0.0.1', on)"},
		{"message", "const { port1, port2 } = new MessageChannel(); port1.onmessage = on; port2.postMessage(1)"},
		{"listener of a stream", "require('stream').Readable.from(['a', 'b']).on('data', on)"},
	}
	loops := []string{"for (;;);", "await 1; for (;;);"}
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("let done = 0; globalThis.on = () => { done++; console.log('goes on') }").ok()
		for _, later := range laters {
			for _, loop := range loops {
				early := loop != loops[0] // some begin before the loop
				r := s.within(soon, "{ done = 0; "+later.code+" }\n"+loop).stopped()
				if !early {
					r.out("", "")
				}
				if s.run("const was = done; await new Promise(r => setTimeout(r, 60)); done - was").text("0").out("", ""); !early {
					s.run("done").text("0")
				}
				if t.Failed() {
					t.Fatalf("after a %s and %s", later.name, loop)
				}
			}
		}
	})
}

// A cell that waits for a child doesn't go on when that is ended.
func TestStopTakesNoNextStep(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("let done = 0; const { execSync, spawnSync, spawn } = require('child_process')").ok()
		for _, code := range []string{
			"try { execSync('sleep 300') } catch {} done++; console.log('goes on')",
			"try { execSync('sleep 300; sleep 300') } finally { done++ }",
			"spawnSync('sleep', ['300']); done++; console.log('goes on')",
			"for (;;) { spawnSync('sh', ['-c', 'trap \\'\\' INT; sleep 300']); done++ }",
			"await new Promise(r => spawn('sleep', ['300']).on('exit', r)); done++; console.log('goes on')",
			"setTimeout(() => { spawnSync('sleep', ['300']); done++ }, 1); await new Promise(() => {})",
		} {
			s.within(soon, code).stopped().out("", "")
			if s.run("await new Promise(r => setTimeout(r, 50)); done").text("0"); t.Failed() {
				t.Fatalf("after %s", code)
			}
		}
	})
}

// An interrupt at any moment of a cell hits that cell and not the next one.
func TestStopAtAnyMoment(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("let x = 41").ok()
		codes := []string{"for (;;) await 1", "await new Promise(() => {})", "while (true) {}", "for (;;) await new Promise(r => setTimeout(r, 1))",
			"const again = () => { queueMicrotask(again) }; again(); await new Promise(() => {})"}
		for i := range 40 {
			s.within(time.Duration(10+i*7%100)*time.Millisecond, codes[i%len(codes)]).stopped()
			if s.run("x + 1").text("42"); t.Failed() {
				t.Fatalf("after %s", codes[i%len(codes)])
			}
		}
	})
}

// What a cell leaves to microtasks and ticks is its own, and its collector may run before
// they are done.
func TestCollectorBeforeTheEnd(t *testing.T) {
	t.Setenv("NODE_OPTIONS", "--expose-gc")
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("let x = 41; const gather = (what) => { gc(); console.log(what) }").ok()
		s.run("Promise.resolve().then(() => gather('then')); x").text("41").out("then\n", "")
		s.run("(async () => { await 1; gather('async') })(); x").text("41").out("async\n", "")
		s.run("process.nextTick(gather, 'tick'); x").text("41").out("tick\n", "")
		s.run("process.nextTick(gather, 'tick'); throw new RangeError('thrown')").failed("RangeError").out("tick\n", "")
		s.run("await 1; Promise.resolve().then(() => gather('then')); throw new RangeError('thrown')").failed("RangeError").out("then\n", "")
		s.within(soon, "setTimeout(gather, 1, 'timer'); await new Promise(() => {})").stopped().out("timer\n", "")
		s.run("x + 1").text("42")
	})
}
