package node

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// Whatever a cell does to its globals and prototypes, the kernel works on.
func TestHostileGlobals(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		for _, code := range []string{
			"console = null; JSON = null; Promise = null; Symbol = null; Object = null; Error = null; Array = null; Map = null; Reflect = null; Atomics = null",
			"Promise.prototype.then = () => { throw new Error('then') }; Promise.resolve = null; Promise.prototype.constructor = null",
			"for (const k of ['push', 'shift', 'map', 'forEach', 'filter', 'reduce', 'slice', 'splice', 'concat', 'indexOf', 'join', 'includes', 'some', 'find']) delete Array.prototype[k]; delete Array.prototype[Symbol.iterator]",
			"for (const k of Object.getOwnPropertyNames(String.prototype)) if (k !== 'length') try { delete String.prototype[k] } catch {}; delete String.prototype[Symbol.iterator]",
			"for (const k of Object.getOwnPropertyNames(Function.prototype)) try { delete Function.prototype[k] } catch {}",
			"RegExp.prototype.exec = () => { throw 1 }; RegExp.prototype[Symbol.replace] = null; delete RegExp.prototype.test",
			"Object.prototype.toJSON = () => 'no'; Array.prototype.toJSON = () => 'no'; Object.prototype.then = 1",
			"Error.prepareStackTrace = () => { throw new Error('prepare') }",
			"Error.stackTraceLimit = 0",
			"Object.defineProperty(Error.prototype, 'name', { get() { throw 1 } }); Object.defineProperty(Error.prototype, 'message', { get() { throw 1 } })",
			"process.stdout = null; process.stderr = null; process.exit = null; process.env = null; process.nextTick = null; process.on = null; process.emit = null",
			"process.stdout.write = null; process.stderr.write = () => { throw 1 }",
			"require('events').prototype.emit = () => { throw 1 }; require('events').prototype.on = null",
			"require('fs').writeSync = null; require('fs').readSync = null; require('fs').statSync = null; require('module').syncBuiltinESMExports()",
			"setTimeout = setImmediate = queueMicrotask = null; require('timers').setImmediate = null",
			"process.removeAllListeners(); process.setUncaughtExceptionCaptureCallback(null)",
			"require('stream').Writable.prototype.write = null; require('net').Socket.prototype.on = null; require('net').Socket.prototype.emit = null",
			"Buffer.from = Buffer.alloc = Buffer.allocUnsafe = Buffer.byteLength = null; Buffer = null; Uint8Array = null",
			"delete globalThis.$$cellard; try { $$cellard_gate = 1 } catch {}",
			"Object.freeze(globalThis)",
			"Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.freeze(Promise.prototype); Object.freeze(Function.prototype)",
			"delete Array.prototype.pop; Array.prototype.push = Array.prototype.shift = () => { throw new Error('list') }",
			"const all = Object.getPrototypeOf(Uint8Array.prototype); for (const k of Reflect.ownKeys(all)) try { delete all[k] } catch {}",
			"const socket = require('net').Socket.prototype; for (const k of Reflect.ownKeys(socket)) try { delete socket[k] } catch {}",
			"const walk = Object.getPrototypeOf([][Symbol.iterator]()); delete walk.next",
			"Object.defineProperty(Array.prototype, '0', { set() { throw new Error('set') }, get() { return 'evil' }, configurable: true })",
			"for (const C of [Map, Set, WeakMap, Promise, Date, Number, Symbol, BigInt]) for (const k of Reflect.ownKeys(C.prototype)) try { delete C.prototype[k] } catch {}",
			"for (const k of Reflect.ownKeys(Reflect)) try { delete Reflect[k] } catch {}; for (const k of Reflect.ownKeys(Object)) try { delete Object[k] } catch {}",
			"Object.setPrototypeOf(globalThis, new Proxy(Object.getPrototypeOf(globalThis), { has() { return false } }))",
		} {
			ok := t.Run(strings.Fields(code)[0], func(t *testing.T) {
				s := open(t, JavaScript, program)
				s.run("let x = 41; const log = console.log").ok()
				s.run(code)
				s.run("x").text("41")
				s.run("[{ a: 1 }]").ok()
				s.run("null.x").failed("TypeError")
				s.run("await 5").text("5")
				s.within(soon/4, "while (true) {}").stopped()
				s.within(soon/4, "for (;;) await 1").stopped()
				s.within(soon/4, "await { then() {} }").stopped()
				s.run("x + 1").text("42")
				if _, err := s.k.Complete(context.Background(), "lo", 2); err != nil {
					t.Error(err)
				}
			})
			if !ok {
				t.Logf("after %s", code)
			}
		}
	})
}

// How Node dies is told.
func TestDeath(t *testing.T) {
	t.Setenv("NODE_OPTIONS", "--max-old-space-size=60")
	each(t, func(t *testing.T, program string) {
		for _, c := range []struct {
			code   string
			signal syscall.Signal
			exit   int
		}{
			{"process.kill(process.pid, 'SIGKILL'); while (true) {}", syscall.SIGKILL, 0},
			{"process.abort()", syscall.SIGABRT, 0},
			{"process.reallyExit(7)", 0, 7},
			{"require('fs').closeSync(3); console.log(1)", 0, -2},
			{"const all = []; for (;;) all.push(new Array(1e5).fill({}))", syscall.SIGABRT, 0},
		} {
			s := open(t, JavaScript, program)
			s.run("let x = 1").ok()
			r := s.within(patience/2, c.code)
			var died *kernel.DiedError
			if !errors.As(r.err, &died) {
				t.Errorf("%s: ended with %v", c.code, r.err)
			} else if c.exit != -2 && (died.Signal() != c.signal || c.signal == 0 && died.State.ExitCode() != c.exit) {
				t.Errorf("%s: %v", c.code, died)
			}
			if r := s.run("1"); r.err == nil {
				t.Error("a cell ran on a Node that is dead")
			}
			if err := s.k.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A Node that sends what is none of the kernel's is ended, and costs no memory.
func TestHostileFrames(t *testing.T) {
	program := nodes(t)[0]
	for _, code := range []string{
		"fs.writeSync(3, Buffer.from([255, 255, 255, 255, 111, 1, 0, 0, 0]))",
		"fs.writeSync(3, Buffer.from([1, 0, 0, 0, 113, 2, 0, 0, 0, 120]))",
		"fs.writeSync(3, Buffer.from([1, 0, 0, 0, 122, 2, 0, 0, 0, 120]))",
		"const b = Buffer.from('{\"data\":{\"image/png\":{}}}'); fs.writeSync(3, Buffer.concat([Buffer.from([b.length, 0, 0, 0, 114, 2, 0, 0, 0]), b]))",
		"fs.writeSync(3, Buffer.from([2, 0, 0, 0, 104, 0, 0, 0, 0, 123, 125]))",
	} {
		s := open(t, JavaScript, program)
		s.run("const fs = require('fs')").ok()
		if r := s.run(code + "; while (true) {}"); r.err == nil || !strings.Contains(r.err.Error(), "is not the kernel's") {
			t.Errorf("%s: ended with %v", code, r.err)
		}
		if err := s.k.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A late callback of an ended cell that computes for ever costs the next cell its time,
// not the session.
func TestLateLoop(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("let x = 41; setTimeout(() => { while (true) {} }, 10)").ok()
		time.Sleep(200 * time.Millisecond)
		s.within(soon, "x").stopped()
		s.run("x").text("41")
	})
}

// No process, file or goroutine stays: TestMain looks for goroutines.
func TestNothingStays(t *testing.T) {
	program := nodes(t)[0]
	fds := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := fds()
	marker := filepath.Join(t.TempDir(), "marker")
	for range 3 {
		s := open(t, JavaScript, program)
		s.run("require('child_process').spawn('sh', ['-c', 'sleep 1000; touch " + marker + "'], { detached: true, stdio: 'ignore' }).unref(); setInterval(() => {}, 1)").ok()
		if err := s.k.Close(); err != nil {
			t.Error(err)
		}
	}
	if now := fds(); now > before+2 {
		t.Errorf("%d files are open, there were %d", now, before)
	}
	procs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range procs {
		if b, _ := os.ReadFile(p); bytes.Contains(b, []byte(marker)) {
			t.Errorf("%s still runs: %q", p, b)
		}
	}
}

func FuzzFrame(f *testing.F) {
	one := func(kind byte, payload string) []byte {
		b := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
		return append(append(append(b, kind), 1, 0, 0, 0), payload...)
	}
	f.Add(one('o', "text"))
	f.Add(append(one('o', "a"), one('o', "b")...))
	f.Add(one('r', `{"data":{"text/plain":"1","application/json":[1]},"metadata":{}}`))
	f.Add([]byte{255, 255, 255, 255, 'o', 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReaderSize(bytes.NewReader(b), 4096)
		total := 0
		for {
			got, err := readFrame(r)
			if err != nil {
				return
			}
			joinText(r, &got)
			if total += headBytes + len(got.payload); total > len(b)+headBytes {
				t.Fatalf("%d bytes came of %d", total, len(b))
			}
		}
	})
}

// A descriptor below 3 that a cell closes stays open: without one Node would end with the next
// child.
func TestCloseOfStandardDescriptors(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("let x = 41; const fs = require('fs')").ok()
		for _, code := range []string{"for (const fd of [0, 1, 2]) fs.closeSync(fd)", "for (const fd of [0, 1, 2]) await new Promise((done, fail) => fs.close(fd, (e) => e ? fail(e) : done()))",
			"await new Promise(r => fs.createWriteStream(null, { fd: 1 }).end('', r))", "import { closeSync } from 'fs'; closeSync(1)",
			"require('child_process').execSync('exec 1>&- 2>&-')"} {
			s.run(code + "; undefined").ok()
			s.run("require('child_process').spawnSync('sh', ['-c', 'echo c; echo d >&2'], { stdio: 'inherit' }); require('child_process').execSync('echo e').toString() + x").text("'e\\n41'").out("c\n", "d\n")
		}
		s.run("fs.closeSync(1e6)").failed("Error")
	})
}
