package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/store"
	"github.com/cellard/cellard/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what would else hang; nothing here takes nearly as long.
const patience = 30 * time.Second

// manager stands in for the supervisor's: its executions, their logs and the store
// are real, but a script of the test is what runs in them.
type manager struct {
	Manager // nil: a method that the test doesn't expect panics

	store  *store.Store
	script func(e *execution.Execution, req api.RunRequest)
	refuse *api.Error
	grace  time.Duration

	mu        sync.Mutex
	reqs      []api.RunRequest
	execs     map[string]*execution.Execution
	abandoned chan string
	scripts   sync.WaitGroup
}

func newManager(t *testing.T) *manager {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), ".runtime", "interpreter"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &manager{store: s, execs: map[string]*execution.Execution{}, abandoned: make(chan string, 10), grace: time.Millisecond}
	t.Cleanup(func() {
		m.scripts.Wait()
		for _, e := range m.execs {
			e.Close()
		}
		s.Close()
	})
	return m
}

func (m *manager) Run(req api.RunRequest) (*supervisor.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reqs = append(m.reqs, req)
	if m.refuse != nil {
		return nil, m.refuse
	}
	id := fmt.Sprintf("e_%d", len(m.execs)+1)
	e := execution.New(execution.Options{ID: id, ContextID: "python", Language: "python", Store: m.store,
		InterruptOnDisconnect: true, Grace: m.grace, Stdin: req.Stdin,
		Abandoned: func(e *execution.Execution) { m.abandoned <- e.ID() }})
	m.execs[id] = e
	m.scripts.Add(1)
	go func() {
		defer m.scripts.Done()
		m.script(e, req)
	}()
	return &supervisor.Run{Execution: e, Leave: e.Attach()}, nil
}

func (m *manager) Execution(id string) (*execution.Execution, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.execs[id]; e != nil {
		return e, nil
	}
	return nil, api.Errorf(api.CodeNotFound, "there is no execution %s", id).WithHint("try another")
}

func (m *manager) OpenResult(contextID, file string) (*store.File, error) {
	return m.store.Open(contextID, file)
}

func (m *manager) Health() (int, time.Duration) { return 0, 1500 * time.Millisecond }
func (m *manager) InstanceID() string           { return "instance" }
func (m *manager) Contexts() []api.Context      { return nil }

// echo is a script that prints the code and ends well.
func echo(e *execution.Execution, req api.RunRequest) {
	e.Begin(1, 1, true, nil)
	e.Stream(execution.Stdout, req.Code)
	e.End(execution.Ending{Status: api.StatusOK})
}

// agent is a server on a Unix socket or TCP, and a client of it.
type agent struct {
	t      *testing.T
	s      *Server
	l      *Listener
	client *http.Client
	token  string
}

func serveOn(t *testing.T, l *Listener, o Options) *agent {
	t.Helper()
	a := &agent{t: t, s: New(o), l: l, token: o.Token}
	addr := l.Addr()
	transport := &http.Transport{MaxIdleConnsPerHost: 100, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, addr.Network(), addr.String())
	}}
	a.client = &http.Client{Transport: transport, Timeout: patience}
	served := make(chan error, 1)
	go func() { served <- a.s.Serve(l) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := a.s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return a
}

func serveUnix(t *testing.T, o Options) *agent {
	t.Helper()
	return serveOn(t, listenTest(t, "unix://"+socketPath(t), ListenOptions{}), o)
}

func serveTCP(t *testing.T, o Options) *agent {
	t.Helper()
	return serveOn(t, listenTest(t, "tcp://127.0.0.1:0", ListenOptions{}), o)
}

func listenTest(t *testing.T, address string, o ListenOptions) *Listener {
	t.Helper()
	l, err := Listen(address, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// socketPath is short: a socket's path has 107 bytes at most.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "srv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func (a *agent) request(method, path, body string, header ...string) *http.Response {
	a.t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, "http://agent"+path, r)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatalf("%s %s: %v", method, path, err)
	}
	a.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// call reads the whole answer; want is its status.
func (a *agent) call(want int, method, path, body string, header ...string) (string, http.Header) {
	a.t.Helper()
	resp := a.request(method, path, body, header...)
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		a.t.Fatalf("%s %s: %v", method, path, err)
	}
	if resp.StatusCode != want {
		a.t.Fatalf("%s %s: status %d, want %d: %s", method, path, resp.StatusCode, want, b)
	}
	return string(b), resp.Header
}

// refused is call for an answer that must be an error of a code.
func (a *agent) refused(want int, code api.Code, method, path, body string, header ...string) *api.Error {
	a.t.Helper()
	b, h := a.call(want, method, path, body, header...)
	var e api.ErrorBody
	if err := json.Unmarshal([]byte(b), &e); err != nil || e.Error == nil {
		a.t.Fatalf("%s %s: no error body: %q", method, path, b)
	}
	if e.Error.Code != code || e.Error.Message == "" || e.Error.Hint == "" || h.Get("Content-Type") != "application/json" {
		a.t.Fatalf("%s %s: %s with code %q, want %q", method, path, b, e.Error.Code, code)
	}
	return e.Error
}

// dial is a raw connection.
func (a *agent) dial() net.Conn {
	a.t.Helper()
	c, err := net.Dial(a.l.Addr().Network(), a.l.Addr().String())
	if err != nil {
		a.t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	a.t.Cleanup(func() { c.Close() })
	return c
}

// rawAnswer reads one answer of a raw connection.
func rawAnswer(t *testing.T, c net.Conn) (int, string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// wait receives, within bounds.
func wait[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}
