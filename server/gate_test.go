package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/protocol/api"
)

// ask sends a request on a raw connection.
func ask(c net.Conn, method, path, body string, header ...string) {
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: a\r\n%sContent-Length: %d\r\n\r\n%s", method, path, strings.Join(header, "\r\n"), len(body), body)
}

func TestTooManyConnections(t *testing.T) {
	m := newManager(t)
	release := make(chan struct{})
	began := make(chan struct{}, 10)
	m.script = func(e *execution.Execution, _ api.RunRequest) {
		e.Begin(1, 1, false, nil)
		began <- struct{}{}
		<-release
		e.End(execution.Ending{Status: api.StatusOK})
	}
	const limit = 3
	a := serveUnix(t, Options{Manager: m, MaxConnections: limit})
	var busy []net.Conn
	for range limit {
		c := a.dial()
		ask(c, "POST", "/v1/interpreter:run", `{"code":""}`)
		wait(t, began, "a cell")
		busy = append(busy, c)
	}
	// All are in use: more are told so, but health is answered.
	for range 3 {
		c := a.dial()
		ask(c, "POST", "/v1/interpreter:run", `{"code":""}`)
		if status, body := rawAnswer(t, c); status != 429 || !strings.Contains(body, `"code":"busy"`) {
			t.Errorf("a run past the bound: %d %s", status, body)
		}
		for _, path := range []string{"/v1/health", "/metrics"} {
			c = a.dial()
			ask(c, "GET", path, "")
			if status, _ := rawAnswer(t, c); status != 200 {
				t.Errorf("%s past the bound: %d", path, status)
			}
			if _, err := c.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("%s: the spare connection is kept: %v", path, err)
			}
		}
	}
	// Those that ask nothing take the spare ones; past them it is said at once.
	for range spareConnections {
		a.dial()
	}
	c := a.dial()
	if status, body := rawAnswer(t, c); status != 429 || !strings.Contains(body, "3 connections") {
		t.Errorf("past all: %d %s", status, body)
	}
	close(release)
	for _, c := range busy {
		if status, _ := rawAnswer(t, c); status != 200 {
			t.Errorf("a cell's answer: %d", status)
		}
	}
}

// An idle connection makes room for a new one, the oldest first.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	m := newManager(t)
	m.script = echo
	a := serveUnix(t, Options{Manager: m, MaxConnections: 2})
	var idle []net.Conn
	for range 5 {
		c := a.dial()
		ask(c, "POST", "/v1/interpreter:run", `{"code":""}`)
		if status, body := rawAnswer(t, c); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
		idle = append(idle, c)
		for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // the answer comes a moment before the idling
			if a.s.idle() == min(len(idle), 2) {
				break
			}
			if time.Now().After(end) {
				t.Fatal("no idle connection")
			}
		}
	}
	for i, c := range idle[:3] {
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("connection %d is still there: %v", i, err)
		}
	}
	for i, c := range idle[3:] {
		ask(c, "GET", "/v1/languages:", "")
		if status, _ := rawAnswer(t, c); status != 404 {
			t.Errorf("connection %d: %d", 3+i, status)
		}
	}
}

func (s *Server) idle() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for g := range s.gates {
		g.mu.Lock()
		for c := range g.conns {
			if c.is(http.StateIdle) {
				n++
			}
		}
		g.mu.Unlock()
	}
	return n
}

// Who has no token can open any number of connections on loopback, and locks nobody
// out by it.
// connections is how many connections are open on all listeners.
func (s *Server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for g := range s.gates {
		n += g.count()
	}
	return n
}

func TestStrangersMakeRoom(t *testing.T) {
	m := newManager(t)
	m.script = echo
	a := serveTCP(t, Options{Manager: m, MaxConnections: 4, Token: "secret"})
	for i := range 100 {
		c := a.dial()
		if i%2 == 0 {
			_, _ = io.WriteString(c, "GET /v1/health HTTP/1.1\r\nX: ")
		}
		if i%10 == 0 {
			a.client.CloseIdleConnections()
			a.call(200, "POST", "/v1/interpreter:run", `{"code":""}`)
		}
	}
	if n := a.s.connections(); n > 4+spareConnections {
		t.Errorf("%d connections", n)
	}
}

// failingListener fails before it accepts.
type failingListener struct {
	net.Listener
	failures atomic.Int32
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.ECONNRESET}
	}
	return l.Listener.Accept()
}

func TestAcceptFails(t *testing.T) {
	l := listenTest(t, "unix://"+socketPath(t), ListenOptions{})
	fl := &failingListener{Listener: l.Listener}
	fl.failures.Store(4)
	l.Listener = fl
	a := serveOn(t, l, Options{Manager: newManager(t)})
	a.call(200, "GET", "/v1/health", "")
	// One that goes on failing doesn't keep the server from its end.
	fl.failures.Store(1 << 30)
	a.dial()
	if err := a.s.Close(); err != nil {
		t.Error(err)
	}
}

// While the server drains, answers that are on their way get there, and streams have
// their last line; nothing new is taken.
func TestShutdown(t *testing.T) {
	m := newManager(t)
	release := make(chan struct{})
	began := make(chan struct{}, 2)
	m.script = func(e *execution.Execution, _ api.RunRequest) {
		e.Begin(1, 1, false, nil)
		began <- struct{}{}
		<-release
		e.End(execution.Ending{Status: api.StatusLost, State: api.StateLost, Lost: &api.Lost{Reason: api.LostShutdown}})
	}
	a := serveUnix(t, Options{Manager: m})
	silent := a.dial() // has sent nothing: not waited for
	one, two := a.dial(), a.dial()
	ask(one, "POST", "/v1/interpreter:run", `{"code":""}`)
	ask(two, "POST", "/v1/interpreter:run", `{"code":"","stream":true}`)
	wait(t, began, "a cell")
	wait(t, began, "a cell")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	drained := make(chan error, 1)
	go func() { drained <- a.s.Shutdown(ctx) }()
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("a connection that sent nothing was answered")
	}
	if c, err := net.Dial("unix", a.l.Addr().String()); err == nil {
		c.Close()
		t.Error("it still listens")
	}
	close(release)
	if status, body := rawAnswer(t, one); status != 200 || !strings.Contains(body, `"reason":"shutdown"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := rawAnswer(t, two); status != 200 || !strings.Contains(body, `"k":"execution"`) {
		t.Errorf("%d %s", status, body)
	}
	if err := wait(t, drained, "the end"); err != nil {
		t.Error(err)
	}
	if err := a.s.Serve(listenTest(t, "unix://"+socketPath(t), ListenOptions{})); err != nil {
		t.Errorf("Serve after the end: %v", err)
	}
}

// What doesn't end in time is cut.
func TestShutdownCuts(t *testing.T) {
	m := newManager(t)
	release := make(chan struct{})
	began := make(chan struct{})
	m.script = func(e *execution.Execution, _ api.RunRequest) {
		e.Begin(1, 1, false, nil)
		close(began)
		<-release
		e.End(execution.Ending{Status: api.StatusOK})
	}
	a := serveUnix(t, Options{Manager: m})
	c := a.dial()
	ask(c, "POST", "/v1/interpreter:run", `{"code":""}`)
	wait(t, began, "the cell")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := a.s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	if b, _ := io.ReadAll(c); len(b) > 0 {
		t.Errorf("answer %q", b)
	}
	close(release)
}
