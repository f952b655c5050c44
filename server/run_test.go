package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/protocol/api"
)

func TestRun(t *testing.T) {
	m := newManager(t)
	m.script = echo
	a := serveUnix(t, Options{Manager: m})
	b, h := a.call(200, "POST", "/v1/interpreter:run", `{"code":"print('<é>')"}`)
	var x api.Execution
	if err := json.Unmarshal([]byte(b), &x); err != nil {
		t.Fatal(err)
	}
	if x.Status != api.StatusOK || x.Stdout != "print('<é>')" || h.Get(ExecutionHeader) != x.ID || x.ID == "" {
		t.Errorf("answer %s with headers %v", b, h)
	}
	if h.Get("Content-Type") != "application/json" || h.Get("Content-Length") == "" || !strings.Contains(b, "<é>") {
		t.Errorf("answer %s with headers %v", b, h)
	}
	// It is still there, by its id.
	if again, _ := a.call(200, "GET", "/v1/executions/"+x.ID, ""); again != b {
		t.Errorf("asked again: %s, first %s", again, b)
	}
}

func TestRunPassesAllFields(t *testing.T) {
	m := newManager(t)
	m.script = echo
	a := serveUnix(t, Options{Manager: m})
	a.call(200, "POST", "/v1/interpreter:run", `{"code":"c","language":"r","context":"x","timeoutMs":0,"interruptOnDisconnect":false,
		"idempotencyKey":"k","waitMs":20000,"ifGeneration":3,"env":{"A":"1"},"cwd":"/","stdin":["y"],"stream":false,"unknown":{"code":1}}`,
		"Idempotency-Key", "k")
	zero, off, wait, gen := int64(0), false, int64(20000), 3
	want := api.RunRequest{Code: "c", Language: "r", Context: "x", TimeoutMs: &zero, InterruptOnDisconnect: &off,
		IdempotencyKey: "k", WaitMs: &wait, IfGeneration: &gen, Env: map[string]string{"A": "1"}, Cwd: "/", Stdin: &api.Stdin{Answers: []string{"y"}}}
	if id := m.reqs[0].RequestID; !api.ValidRequestID(id) {
		t.Errorf("the request's id is %q", id)
	}
	m.reqs[0].RequestID = ""
	if !reflect.DeepEqual(m.reqs[0], want) {
		t.Errorf("got  %+v\nwant %+v", m.reqs[0], want)
	}
	// The key may come by the header alone.
	a.call(200, "POST", "/v1/interpreter:run", `{"code":"c"}`, "Idempotency-Key", "other")
	if m.reqs[1].IdempotencyKey != "other" {
		t.Errorf("key %q", m.reqs[1].IdempotencyKey)
	}
}

func TestRunRefused(t *testing.T) {
	m := newManager(t)
	m.refuse = api.Errorf(api.CodeGeneration, "no").WithHint("hint")
	a := serveUnix(t, Options{Manager: m})
	e := a.refused(409, api.CodeGeneration, "POST", "/v1/interpreter:run", `{"code":"","stream":true}`)
	if e.Hint != "hint" {
		t.Errorf("hint %q", e.Hint)
	}
	m.refuse = api.Errorf(api.CodeBusy, "no")
	_, h := a.call(429, "POST", "/v1/interpreter:run", `{"code":""}`)
	if h.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

// A refusal that comes after the run was taken has its own status, where no answer
// has begun, and is a line of a stream.
func TestRunFails(t *testing.T) {
	m := newManager(t)
	m.script = func(e *execution.Execution, _ api.RunRequest) {
		e.Fail(api.Errorf(api.CodeKernelFailed, "it said: no").WithHint("install it"))
	}
	a := serveUnix(t, Options{Manager: m})
	a.refused(502, api.CodeKernelFailed, "POST", "/v1/interpreter:run", `{"code":""}`)
	lines := a.stream("POST", "/v1/interpreter:run", `{"code":"","stream":true}`)
	last := lines[len(lines)-1]
	if last.K != api.KindFailure || last.Failure.Code != api.CodeKernelFailed || last.Failure.HTTPStatus() != 502 {
		t.Errorf("last line %+v", last)
	}
	a.refused(502, api.CodeKernelFailed, "GET", "/v1/executions/e_1", "")
}

func TestWaitMs(t *testing.T) {
	m := newManager(t)
	end := make(chan struct{})
	m.script = func(e *execution.Execution, _ api.RunRequest) {
		e.Begin(1, 1, false, nil)
		e.Stream(execution.Stdout, "so far")
		<-end
		e.End(execution.Ending{Status: api.StatusOK})
	}
	a := serveUnix(t, Options{Manager: m})
	b, _ := a.call(200, "POST", "/v1/interpreter:run", `{"code":"","waitMs":0}`)
	var x api.Execution
	if err := json.Unmarshal([]byte(b), &x); err != nil || x.Status != api.StatusRunning {
		t.Errorf("answer %s", b)
	}
	lines := a.stream("POST", "/v1/interpreter:run", `{"code":"","stream":true,"waitMs":100}`)
	last := lines[len(lines)-1]
	if last.K != api.KindExecution || last.Execution.Status != api.StatusRunning {
		t.Errorf("last line %+v", last)
	}
	// The client got its answer: that it is not there any more interrupts nothing.
	select {
	case id := <-m.abandoned:
		t.Errorf("%s was given up", id)
	default:
	}
	// And attaching shows the rest, from the seq that the last line had.
	resp := a.request("GET", "/v1/executions/e_2/events?after=0", "")
	close(end)
	lines = decodeLines(t, resp.Body)
	if last = lines[len(lines)-1]; last.K != api.KindExecution || last.Execution.Status != api.StatusOK || last.Execution.Stdout != "so far" {
		t.Errorf("last line %+v", last)
	}
}

// A client that goes away is noticed though nothing is written to it.
func TestDisconnect(t *testing.T) {
	for _, body := range []string{`{"code":""}`, `{"code":"","stream":true}`} {
		m := newManager(t)
		end := make(chan struct{})
		began := make(chan struct{})
		m.script = func(e *execution.Execution, _ api.RunRequest) {
			e.Begin(1, 1, false, nil)
			close(began)
			<-end
			e.End(execution.Ending{Status: api.StatusInterrupted})
		}
		a := serveUnix(t, Options{Manager: m})
		ctx, cancel := context.WithCancel(context.Background())
		req, _ := http.NewRequestWithContext(ctx, "POST", "http://agent/v1/interpreter:run", strings.NewReader(body))
		done := make(chan struct{})
		go func() {
			defer close(done)
			if resp, err := a.client.Do(req); err == nil {
				_, _ = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
		}()
		wait(t, began, "the cell")
		cancel()
		wait(t, m.abandoned, "the notice that nobody reads")
		close(end)
		wait(t, done, "the client's end")
	}
}
