package node

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// between stands between a kernel and its Node's debugging interface.
type between struct {
	listener net.Listener
	node     string
	wg       sync.WaitGroup
	gate     sync.RWMutex // whose holder keeps what is sent to Node

	mu    sync.Mutex
	conns []net.Conn
}

// stand gives a session's kernel a connection through a between.
func stand(t *testing.T, s *session) *between {
	t.Helper()
	at := s.k.watch.at
	u, err := url.Parse(at.URL)
	if err != nil {
		t.Fatal(err)
	}
	b := &between{node: u.Host}
	if b.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.listener.Close(); b.cut(); b.wg.Wait() })
	b.wg.Add(1)
	go func() {
		defer b.wg.Done()
		for {
			conn, err := b.listener.Accept()
			if err != nil {
				return
			}
			b.take(conn)
		}
	}()
	s.k.watch.close()
	at.URL = strings.Replace(at.URL, u.Host, b.listener.Addr().String(), 1)
	if s.k.watch, err = newWatch(at); err != nil {
		t.Fatal(err)
	}
	s.run("await new Promise(r => setTimeout(r, 20))") // Node tells of the connection
	return b
}

func (b *between) take(conn net.Conn) {
	node, err := net.Dial("tcp", b.node)
	if err != nil {
		conn.Close()
		return
	}
	b.mu.Lock()
	b.conns = append(b.conns, conn, node)
	b.mu.Unlock()
	b.wg.Add(2)
	go func() {
		defer b.wg.Done()
		_, _ = io.Copy(conn, node)
		conn.Close()
	}()
	go func() {
		defer b.wg.Done()
		defer node.Close()
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			b.gate.RLock()
			_, err = node.Write(buf[:n])
			b.gate.RUnlock()
			if err != nil {
				return
			}
		}
	}()
}

// cut ends the connections that there are.
func (b *between) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range b.conns {
		conn.Close()
	}
	b.conns = nil
}

// A termination that comes only when its cell has ended hits nothing else.
func TestLateTermination(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("let x = 41").ok()
		b := stand(t, s)
		for i, code := range []string{"const end = performance.now() + 400; while (performance.now() < end); x + 1", "await new Promise(r => setTimeout(r, 400)); x + 1"} {
			for _, late := range []time.Duration{0, 10 * time.Millisecond, 300 * time.Millisecond} {
				b.gate.Lock()
				ended := time.AfterFunc(400*time.Millisecond+late, b.gate.Unlock)
				s.within(100*time.Millisecond, "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 350)").text("'timed-out'")
				s.within(patience/4, code).text("42").out("", "")
				if ended.Stop() {
					b.gate.Unlock()
				}
				s.within(100*time.Millisecond, "for (;;);").stopped()
				if s.run("x + 1").text("42"); t.Failed() {
					t.Fatalf("%d, %v", i, late)
				}
			}
		}
	})
}

// A connection that a cell breaks is made again.
func TestBrokenConnection(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("let x = 41; const fs = require('fs'); undefined").ok()
		for _, code := range []string{"for (;;);", "await new Promise(() => {})", "for (;;) await 1"} {
			s.run(`for (const fd of fs.readdirSync('/proc/self/fd')) {
	try { if (fs.readlinkSync('/proc/self/fd/' + fd).startsWith('socket:')) fs.writeSync(+fd, Buffer.alloc(100, 255)) } catch {}
}`).ok()
			s.within(soon, code).stopped()
			s.run("x + 1").text("42").out("", "")
		}
	})
}

// What Node tells of what a cell did can be large, and costs nothing.
func TestLargeEvents(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("let x = 41; const s = new (require('inspector').Session)(); s.connect(); s.post('Debugger.enable'); undefined").ok()
		connection := s.k.watch.inspector
		for _, code := range []string{
			"(0, eval)('0\\n//# sourceURL=' + 'x'.repeat(3e6)); s.post('Debugger.pause'); for (;;);",
			"const deep = (n) => { const a = 'x'.repeat(1000), b = n; if (n) return deep(n - 1) + a.length + b; s.post('Debugger.pause'); for (;;); }; deep(3000)",
		} {
			s.within(soon, code).stopped()
			s.within(soon, "for (;;);").stopped()
			s.run("x + 1").text("42").out("", "")
		}
		if s.k.watch.inspector != connection {
			t.Error("the connection was made again")
		}
	})
}

// Nothing of a stopped cell stays in the kernel's realm.
func TestNoFlagStays(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		for i := range 60 {
			s.within(time.Duration(i%20)*time.Millisecond, []string{"for (;;);", "await new Promise(() => {})"}[i%2]).stopped()
		}
		s.run("1").ok()
		s.run(`let realm, names
const s = new (require('inspector').Session)()
s.connect()
s.on('Runtime.executionContextCreated', (e) => { if (e.params.context.name === 'cellard') realm = e.params.context.id })
s.post('Runtime.enable')
s.post('Runtime.evaluate', { contextId: realm, expression: 'Object.keys(globalThis).join()' }, (_, r) => { names = r.result.value })
names`).text("'process,status'")
	})
}
