package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/supervisor"
)

func TestRouting(t *testing.T) {
	m := newManager(t)
	a := serveUnix(t, Options{Manager: m})
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/health/", "//v1/health", "/v1/interpreter:stop", "/v1/executions/", "/v1/executions/a:b",
		"/v1/interpreter/contexts/a:stop", "/v1/interpreter/contexts/", "/v1/interpreter/contexts/a/results/", "/v1/interpreter/contexts/a/results/b/c",
		"/v1/../v1/health", "/V1/health", "/v1/executions/a%2Fb/c", strings.Repeat("/a", 5000)} {
		a.refused(404, api.CodeNotFound, "GET", path, "")
	}
	for path, allow := range map[string]string{
		"/v1/interpreter:run":                   "POST",
		"/v1/executions/a":                      "GET",
		"/v1/executions/a:interrupt":            "POST",
		"/v1/interpreter/contexts":              "GET, POST",
		"/v1/interpreter/contexts/a":            "DELETE, GET",
		"/v1/interpreter/contexts/a:restart":    "POST",
		"/v1/interpreter/contexts/a/results/f":  "GET",
		"/v1/interpreter/contexts/a%3Arestart":  "POST",
		"/v1/health":                            "GET",
		"/metrics":                              "GET",
		"/v1/languages":                         "GET",
		"/v1/interpreter/contexts/a:isComplete": "POST",
	} {
		e := a.refused(405, api.CodeInvalidRequest, "PATCH", path, "")
		_, h := a.call(405, "PATCH", path, "")
		if h.Get("Allow") != allow || !strings.Contains(e.Hint, allow) {
			t.Errorf("%s allows %q, want %q; hint %q", path, h.Get("Allow"), allow, e.Hint)
		}
	}
	if _, h := a.call(200, "HEAD", "/v1/health", ""); h.Get("Content-Length") == "" {
		t.Errorf("HEAD has %v", h)
	}
}

func TestHealth(t *testing.T) {
	m := newManager(t)
	a := serveUnix(t, Options{Manager: m, Version: "v1"})
	b, h := a.call(200, "GET", "/v1/health", "")
	if want := `{"status":"ok","version":"v1","api":1,"instanceId":"instance","features":[],"running":0,"idleMs":1500}` + "\n"; b != want {
		t.Errorf("got  %swant %s", b, want)
	}
	if h.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", h)
	}
}

// contextManager answers for contexts, and remembers what it was asked.
type contextManager struct {
	*manager
	asked []string
	err   error
	dir   string
}

func (m *contextManager) note(format string, args ...any) error {
	m.asked = append(m.asked, fmt.Sprintf(format, args...))
	return m.err
}

func (m *contextManager) Context(id string) (api.Context, error) {
	return api.Context{ID: id, Language: "python", State: api.ContextIdle}, m.note("context %s", id)
}
func (m *contextManager) CreateContext(_ context.Context, r api.ContextRequest) (api.Context, error) {
	return api.Context{ID: r.ID}, m.note("create %s %s %s %v", r.ID, r.Language, r.Cwd, r.Env)
}
func (m *contextManager) Restart(_ context.Context, id string) (api.Context, error) {
	return api.Context{ID: id}, m.note("restart %s", id)
}
func (m *contextManager) Interrupt(_ context.Context, id string) (bool, error) {
	return true, m.note("interrupt %s", id)
}
func (m *contextManager) InterruptExecution(id string) (bool, error) {
	return false, m.note("interrupt execution %s", id)
}
func (m *contextManager) Input(id, value string) error { return m.note("input %s %s", id, value) }
func (m *contextManager) Delete(_ context.Context, id string) error {
	return m.note("delete %s", id)
}
func (m *contextManager) Ask(_ context.Context, id, msgType string, r api.CompleteRequest) (json.RawMessage, error) {
	cursor := -1
	if r.Cursor != nil {
		cursor = *r.Cursor
	}
	return json.RawMessage(`{"status": "ok"}`), m.note("%s %s %s %d %d", msgType, id, r.Code, cursor, r.Detail)
}
func (m *contextManager) Variables(_ context.Context, id string) (api.VariableList, error) {
	return api.VariableList{Data: []api.Variable{{Name: "x", Type: "int", Preview: "1"}}, Total: 1, Generation: 2}, m.note("variables %s", id)
}
func (m *contextManager) Notebook(_ context.Context, id string) (*supervisor.NotebookFile, error) {
	if err := m.note("notebook %s", id); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(m.dir, "")
	if err == nil {
		_, err = f.WriteString(`{"cells": []}`)
		_, _ = f.Seek(0, io.SeekStart)
	}
	return &supervisor.NotebookFile{File: f}, err
}
func (m *contextManager) Languages(context.Context) []api.Language {
	return []api.Language{{Name: "python", State: api.LanguageReady}}
}

func TestResources(t *testing.T) {
	m := &contextManager{manager: newManager(t), dir: t.TempDir()}
	a := serveUnix(t, Options{Manager: m})
	for _, c := range []struct {
		method, path, body string
		asked, has         string
	}{
		{"GET", "/v1/interpreter/contexts", "", "", `{"data":[]}`},
		{"POST", "/v1/interpreter/contexts", `{"id":"x","language":"r","cwd":"/","env":{"A":"1"}}`, "create x r / map[A:1]", `"id":"x"`},
		{"POST", "/v1/interpreter/contexts", "", "create    map[]", `"id":""`},
		{"GET", "/v1/interpreter/contexts/x", "", "context x", `"id":"x"`},
		{"POST", "/v1/interpreter/contexts/x:restart", "", "restart x", `"id":"x"`},
		{"POST", "/v1/interpreter/contexts/x%3arestart", `{}`, "restart x", `"id":"x"`},
		{"POST", "/v1/interpreter/contexts/x:interrupt", "", "interrupt x", `{"interrupted":true}`},
		{"DELETE", "/v1/interpreter/contexts/x", "", "delete x", `{"deleted":true}`},
		{"POST", "/v1/interpreter/contexts/x:complete", `{"code":"imp","cursor":3}`, "complete_request x imp 3 0", `{"status":"ok"}`},
		{"POST", "/v1/interpreter/contexts/x:inspect", `{"code":"len","detail":1}`, "inspect_request x len -1 1", `{"status":"ok"}`},
		{"POST", "/v1/interpreter/contexts/x:isComplete", `{"code":"if"}`, "is_complete_request x if -1 0", `{"status":"ok"}`},
		{"GET", "/v1/interpreter/contexts/x/variables", "", "variables x",
			`{"data":[{"name":"x","type":"int","size":null,"shape":null,"preview":"1"}],"total":1,"generation":2}`},
		{"GET", "/v1/interpreter/contexts/x/notebook", "", "notebook x", `{"cells": []}`},
		{"POST", "/v1/executions/e:interrupt", "", "interrupt execution e", `{"interrupted":false}`},
		{"POST", "/v1/executions/e:input", `{"value":"v"}`, "input e v", `{"accepted":true}`},
		{"GET", "/v1/languages", "", "", `{"data":[{"name":"python","state":"ready"`},
	} {
		m.asked = nil
		b, _ := a.call(200, c.method, c.path, c.body)
		if strings.Join(m.asked, ";") != c.asked || !strings.Contains(b, c.has) {
			t.Errorf("%s %s: asked %q, want %q; answer %s", c.method, c.path, m.asked, c.asked, b)
		}
		if c.asked != "" {
			m.err = fmt.Errorf("wrapped: %w", api.Errorf(api.CodeNotFound, "none").WithHint("try another"))
			a.refused(404, api.CodeNotFound, c.method, c.path, c.body)
			m.err = nil
		}
	}
	for _, c := range [][2]string{{"POST", ":fork"}, {"POST", ":rollback"}} {
		a.refused(409, api.CodeUnsupported, c[0], "/v1/interpreter/contexts/x"+c[1], "")
	}
	a.refused(422, api.CodeInvalidRequest, "POST", "/v1/interpreter/contexts/x:complete", `{}`)
	a.refused(400, api.CodeInvalidRequest, "POST", "/v1/interpreter/contexts/x:complete", `{"code":"","cursor":-1}`)
	a.refused(422, api.CodeInvalidRequest, "POST", "/v1/executions/e:input", `{"value":1}`)
	a.refused(400, api.CodeInvalidRequest, "POST", "/v1/interpreter/contexts", `{"id":1}`)
	m.err = errors.New("a bug")
	a.refused(500, api.CodeInternal, "GET", "/v1/interpreter/contexts/x", "")
}

func TestBodyLimits(t *testing.T) {
	m := newManager(t)
	m.script = echo
	a := serveUnix(t, Options{Manager: m, MaxBody: 1000})
	code := strings.Repeat("x", 1000-len(`{"code":""}`))
	a.call(200, "POST", "/v1/interpreter:run", `{"code":"`+code+`"}`)
	a.refused(413, api.CodeTooLarge, "POST", "/v1/interpreter:run", `{"code":"x`+code+`"}`)
	// One that sends all before it looks for an answer, more than sockets hold, gets it.
	big := strings.Repeat("x", 1<<20)
	b := serveUnix(t, Options{Manager: m, MaxBody: 512 << 10})
	for range 50 {
		c := b.dial()
		if _, err := fmt.Fprintf(c, "POST /v1/interpreter:run HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(big), big); err != nil {
			t.Fatal(err)
		}
		if status, _ := rawAnswer(t, c); status != 413 {
			t.Fatalf("sent whole: %d", status)
		}
		c.Close()
	}
	// Chunked, without a length that tells it beforehand.
	req, _ := http.NewRequest("POST", "http://a/v1/interpreter:run", io.MultiReader(strings.NewReader(`{"code":"x`), strings.NewReader(code+`"}`)))
	resp, err := a.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("chunked: %d", resp.StatusCode)
	}
	a.refused(400, api.CodeInvalidRequest, "POST", "/v1/interpreter:run", `{"code":""}`, "Content-Encoding", "gzip")
	// A length is a claim: nothing is read or allocated by it.
	c := a.dial()
	fmt.Fprintf(c, "POST /v1/interpreter:run HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000000000\r\n\r\n")
	if status, _ := rawAnswer(t, c); status != 413 {
		t.Errorf("a claim of 9 TB: %d", status)
	}
}

// A client that stops in the middle of its headers or body is not waited for.
func TestSlowRequests(t *testing.T) {
	m := newManager(t)
	m.script = echo
	a := serveTCP(t, Options{Manager: m, HeaderTimeout: 100 * time.Millisecond, Token: "t"})
	for request, want := range map[string]string{
		"":                            "",
		"GET /v1/he":                  "",
		"GET /v1/health HTTP/1.1\r\n": "",
		"POST /v1/interpreter:run HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\nContent-Length: 100\r\n\r\n{":          "HTTP/1.1 400",
		"POST /v1/interpreter:run HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{":                                     "HTTP/1.1 401",
		"POST /v1/interpreter:run HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{":                         "HTTP/1.1 401",
		"POST /nowhere HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\nContent-Length: 100\r\n\r\n{":                     "HTTP/1.1 404",
		"GET /v1/health HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n": "HTTP/1.1 431",
		"\x16\x03\x01\x02\x00\x01\r\n\r\n": "HTTP/1.1 400",
	} {
		c := a.dial()
		go func() { _, _ = io.WriteString(c, request) }()
		b, _ := io.ReadAll(c) // ends when the server closes; a reset after the answer is fine
		if !strings.HasPrefix(string(b), want) || want == "" && len(b) > 0 && !strings.HasPrefix(string(b), "HTTP/1.1 4") {
			t.Errorf("%.60q: answer %.60q, want %q", request, b, want)
		}
	}
	a.call(200, "GET", "/v1/health", "")
}

// logBuffer collects a log, of all levels.
type logBuffer struct{ fixture.Buffer }

func (l *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// panicky panics where it is asked for its contexts.
type panicky struct{ *manager }

func (panicky) Contexts() []api.Context { panic("on purpose") }

func TestPanic(t *testing.T) {
	var log logBuffer
	a := serveUnix(t, Options{Manager: panicky{newManager(t)}, Logger: log.logger()})
	e := a.refused(500, api.CodeInternal, "GET", "/v1/interpreter/contexts", "")
	if strings.Contains(e.Message+e.Hint, "purpose") {
		t.Errorf("the answer tells the panic: %v", e)
	}
	// Where it was is told, what it says is not: that may quote a request.
	if s := log.String(); strings.Contains(s, "on purpose") || !strings.Contains(s, "call_test.go") {
		t.Errorf("the log does not tell it, or too much: %s", s)
	}
	a.call(200, "GET", "/v1/health", "")
}

// A panic after the answer has begun cuts the answer, so that it can't be taken for
// whole.
func TestPanicInStream(t *testing.T) {
	m := newManager(t)
	began := make(chan struct{})
	m.script = func(e *execution.Execution, _ api.RunRequest) {
		e.Begin(1, 1, false, nil)
		<-began
		e.End(execution.Ending{Status: api.StatusOK})
	}
	s := New(Options{Manager: m})
	s.routes = append([]route{{"GET", "/half", func(_ *Server, c *call) error {
		c.w.WriteHeader(200)
		_, _ = c.w.Write([]byte("half"))
		panic("on purpose")
	}}}, s.routes...)
	l := listenTest(t, "unix://"+socketPath(t), ListenOptions{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c := (&agent{t: t, l: l}).dial()
	fmt.Fprint(c, "GET /half HTTP/1.1\r\nHost: a\r\n\r\n")
	b, _ := io.ReadAll(c)
	if strings.HasSuffix(string(b), "0\r\n\r\n") {
		t.Errorf("answer %q looks whole", b)
	}
	close(began)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// The log tells that a request was made and what came of it, not what was in it.
func TestLogIsDiscreet(t *testing.T) {
	m := newManager(t)
	m.script = echo
	var log logBuffer
	a := serveTCP(t, Options{Manager: m, Logger: log.logger(), Token: "s3cret-token"})
	a.call(200, "POST", "/v1/interpreter:run", `{"code":"s3cret-code","env":{"A":"s3cret-env"}}`)
	a.call(422, "POST", "/v1/interpreter:run", `{"code":["s3cret-body"]}`)
	a.call(200, "GET", "/v1/executions/e_1?x=s3cret-query", "")
	a.client.CloseIdleConnections()
	if err := a.s.Close(); err != nil {
		t.Error(err)
	}
	s := log.String()
	if strings.Contains(s, "s3cret") {
		t.Errorf("the log tells too much: %s", s)
	}
	for _, want := range []string{`route="POST /v1/interpreter:run"`, "status=200", "request=", "execution=e_1", "durationMs=", "status=422", "peer=", "method=GET"} {
		if !strings.Contains(s, want) {
			t.Errorf("the log lacks %s: %s", want, s)
		}
	}
}
