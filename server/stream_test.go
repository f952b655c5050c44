package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/protocol/api"
)

// stream is a request whose answer is NDJSON, read to its end.
func (a *agent) stream(method, path, body string) []api.Event {
	a.t.Helper()
	resp := a.request(method, path, body)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/x-ndjson" || resp.Header.Get(ExecutionHeader) == "" {
		a.t.Fatalf("%s: %d %v", path, resp.StatusCode, resp.Header)
	}
	return decodeLines(a.t, resp.Body)
}

func decodeLines(t *testing.T, r io.Reader) []api.Event {
	t.Helper()
	var all []api.Event
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var ev api.Event
		if err := json.Unmarshal(lines.Bytes(), &ev); err != nil {
			t.Fatalf("line %q: %v", lines.Text(), err)
		}
		all = append(all, ev)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no lines")
	}
	return all
}

func TestStream(t *testing.T) {
	m := newManager(t)
	begin := make(chan struct{})
	m.script = func(e *execution.Execution, req api.RunRequest) {
		<-begin
		echo(e, req)
	}
	a := serveUnix(t, Options{Manager: m})
	// The headers come before there is anything to tell.
	resp := a.request("POST", "/v1/interpreter:run", `{"code":"hi","stream":true}`)
	if id := resp.Header.Get(ExecutionHeader); id != "e_1" {
		t.Errorf("header %q", id)
	}
	close(begin)
	var got []string
	for i, ev := range decodeLines(t, resp.Body) {
		got = append(got, string(ev.K))
		if ev.Seq != int64(i+1) {
			t.Errorf("%s has seq %d", ev.K, ev.Seq)
		}
	}
	if s := strings.Join(got, " "); s != "start stdout end execution" {
		t.Errorf("events %s", s)
	}
}

func TestPing(t *testing.T) {
	m := newManager(t)
	end := make(chan struct{})
	m.script = func(e *execution.Execution, req api.RunRequest) {
		e.Begin(1, 1, false, nil)
		<-end
		e.End(execution.Ending{Status: api.StatusOK})
	}
	a := serveUnix(t, Options{Manager: m, Ping: 10 * time.Millisecond})
	resp := a.request("POST", "/v1/interpreter:run", `{"code":"","stream":true}`)
	r := bufio.NewReader(resp.Body)
	for pings := 0; pings < 3; {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		var ev api.Event
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatal(err)
		}
		if ev.K == api.KindPing {
			pings++
			if line != "{\"k\":\"ping\",\"seq\":1}\n" && line != "{\"k\":\"ping\",\"seq\":0}\n" {
				t.Errorf("ping %q", line)
			}
		}
	}
	close(end)
	lines := decodeLines(t, r)
	if last := lines[len(lines)-1]; last.K != api.KindExecution || last.Seq != 3 {
		t.Errorf("last line %+v: a ping was counted", last)
	}
}

func TestAttach(t *testing.T) {
	m := newManager(t)
	m.script = echo
	a := serveUnix(t, Options{Manager: m})
	a.call(200, "POST", "/v1/interpreter:run", `{"code":"hi"}`)
	for after, want := range map[string]string{
		"":         "start stdout end execution",
		"?after=0": "start stdout end execution",
		"?after=2": "end execution",
		"?after=3": "execution",
		// There is nothing after these, and the last line comes all the same.
		"?after=4": "execution",
	} {
		var got []string
		for _, ev := range a.stream("GET", "/v1/executions/e_1/events"+after, "") {
			got = append(got, string(ev.K))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("events%s: %s, want %s", after, s, want)
		}
	}
	a.refused(400, api.CodeInvalidRequest, "GET", "/v1/executions/e_1/events?after=-1", "")
	a.refused(400, api.CodeInvalidRequest, "GET", "/v1/executions/e_1/events?after=x", "")
	a.refused(404, api.CodeNotFound, "GET", "/v1/executions/e_9/events", "")
	if _, h := a.call(200, "HEAD", "/v1/executions/e_1/events", ""); h.Get(ExecutionHeader) != "e_1" {
		t.Errorf("HEAD: %v", h)
	}
	// A seq that no event has yet would pass the next ones over.
	a.call(400, "GET", "/v1/executions/e_1/events?after=5", "")
}

// An execution that is forgotten under a reader ends its stream with a failure.
func TestForgotten(t *testing.T) {
	m := newManager(t)
	m.script = func(e *execution.Execution, req api.RunRequest) {
		e.Begin(1, 1, false, nil)
		e.Close()
	}
	a := serveUnix(t, Options{Manager: m})
	lines := a.stream("POST", "/v1/interpreter:run", `{"code":"","stream":true}`)
	if last := lines[len(lines)-1]; last.K != api.KindFailure || last.Failure.Code != api.CodeGone {
		t.Errorf("last line %+v", last)
	}
}

// A reader that is slow, but reads, gets all of it, however long it takes in all: a
// stall is only a time in which nothing goes out.
func TestSlowReader(t *testing.T) {
	m := newManager(t)
	const events, size = 64, 32 << 10
	m.script = func(e *execution.Execution, req api.RunRequest) {
		e.Begin(1, 1, false, nil)
		for i := range events {
			e.Stream(i%2, strings.Repeat(fmt.Sprintf("%07d\n", i), size/8))
		}
		e.End(execution.Ending{Status: api.StatusOK})
	}
	a := serveUnix(t, Options{Manager: m, Stall: 20 * time.Second})
	resp := a.request("POST", "/v1/interpreter:run", `{"code":"","stream":true}`)
	var text strings.Builder
	var last api.Event
	for _, ev := range decodeLines(t, &slowReader{r: resp.Body, left: 20}) {
		if ev.K == api.KindStdout || ev.K == api.KindStderr {
			text.WriteString(ev.Text)
		}
		if ev.Seq != last.Seq+1 {
			t.Fatalf("seq %d after %d", ev.Seq, last.Seq)
		}
		last = ev
	}
	var want strings.Builder
	for i := range events {
		want.WriteString(strings.Repeat(fmt.Sprintf("%07d\n", i), size/8))
	}
	if text.String() != want.String() || last.K != api.KindExecution {
		t.Errorf("got %d bytes, want %d; last line %s", text.Len(), want.Len(), last.K)
	}
}

// slowReader sleeps before each of its first reads.
type slowReader struct {
	r    io.Reader
	left int
}

func (s *slowReader) Read(b []byte) (int, error) {
	if s.left > 0 {
		s.left--
		time.Sleep(20 * time.Millisecond)
	}
	return s.r.Read(b)
}

// A reader that takes nothing for Options.Stall counts as gone, on a stream and on a
// large answer.
func TestStalledReader(t *testing.T) {
	for _, tcp := range []bool{false, true} {
		m := newManager(t)
		end := make(chan struct{})
		m.script = func(e *execution.Execution, req api.RunRequest) {
			e.Begin(1, 1, false, nil)
			for range 128 { // 8 MiB, far more than the socket's buffers hold
				e.Stream(execution.Stdout, strings.Repeat("x", 64<<10))
			}
			<-end
			e.End(execution.Ending{Status: api.StatusOK})
		}
		o := Options{Manager: m, Stall: 100 * time.Millisecond, Token: "secret"}
		a := serveUnix(t, o)
		if tcp {
			a = serveTCP(t, o)
		}
		c := a.dial()
		if tc, ok := c.(*net.TCPConn); ok {
			if err := tc.SetReadBuffer(4 << 10); err != nil { // else it grows to many MiB
				t.Fatal(err)
			}
		}
		b := `{"code":"","stream":true}`
		fmt.Fprintf(c, "POST /v1/interpreter:run HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
		wait(t, m.abandoned, "the notice that nobody reads")
		close(end)
		if tcp {
			continue // what is on its way takes long through so small a buffer
		}
		// What was sent before is there, then the connection's end: no last line.
		got, _ := io.ReadAll(c)
		if strings.Contains(string(got), `"k":"execution"`) || !strings.Contains(string(got), `"k":"start"`) {
			t.Errorf("a stalled reader got %d bytes", len(got))
		}
	}
}

// The server is there for others while one reader stalls.
func TestStalledReaderHoldsNobody(t *testing.T) {
	m := newManager(t)
	release := make(chan struct{})
	m.script = func(e *execution.Execution, req api.RunRequest) {
		e.Begin(1, 1, false, nil)
		if req.Stream {
			for range 64 {
				e.Stream(execution.Stdout, strings.Repeat("x", 64<<10))
			}
			<-release
		}
		e.End(execution.Ending{Status: api.StatusOK})
	}
	a := serveUnix(t, Options{Manager: m})
	resp := a.request("POST", "/v1/interpreter:run", `{"code":"","stream":true}`)
	a.call(200, "POST", "/v1/interpreter:run", `{"code":""}`)
	a.call(http.StatusOK, "GET", "/v1/health", "")
	close(release)
	lines := decodeLines(t, resp.Body)
	if last := lines[len(lines)-1]; last.K != api.KindExecution {
		t.Errorf("last line %s", last.K)
	}
}

func TestLastSeq(t *testing.T) {
	for _, ev := range []api.Event{
		{K: api.KindStart, Seq: 7},
		{K: api.KindGap, Missed: 3, Seq: 7},
		{K: api.KindStdout, Text: `{"seq":9}`, Seq: 7},
		{K: api.KindResult, Data: map[string]json.RawMessage{"application/json": json.RawMessage(`{"seq":9}`)}, Seq: 7},
		{K: api.KindExecution, Execution: &api.Execution{Stdout: `"seq":8}`}, Seq: 7},
		{K: api.KindFailure, Failure: api.Errorf(api.CodeGone, `"seq":8`), Seq: 7},
	} {
		b, err := api.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		if got := lastSeq(append([]byte("{\"k\":\"ping\",\"seq\":3}\n"), append(b, '\n')...), 1); got != 7 {
			t.Errorf("lastSeq(%s) = %d", b, got)
		}
	}
	if got := lastSeq([]byte("{}\n"), 5); got != 5 {
		t.Errorf("without a seq: %d", got)
	}
}
