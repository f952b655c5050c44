package endtoend

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/api"
)

// stream is an answer that is read line by line.
type stream struct {
	t      *testing.T
	res    *http.Response
	lines  *bufio.Reader
	raw    bytes.Buffer // all of it
	events []api.Event
	close  func()
}

// follow makes a request whose answer is a stream, which ends with the test.
func (a *agent) follow(method, path string, body any) *stream {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	res, err := a.do(ctx, method, path, body)
	if err != nil {
		cancel()
		a.t.Fatal(err)
	}
	s := newStream(a.t, res)
	s.close = func() { cancel(); res.Body.Close() }
	a.t.Cleanup(s.close)
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "application/x-ndjson" {
		b, _ := io.ReadAll(res.Body)
		a.t.Fatalf("%s %s: HTTP %d %s: %.300s", method, path, res.StatusCode, res.Header, b)
	}
	return s
}

func newStream(t *testing.T, res *http.Response) *stream {
	return &stream{t: t, res: res, lines: bufio.NewReader(res.Body)}
}

func (a *agent) stream(body object) *stream {
	a.t.Helper()
	body["stream"] = true
	return a.follow("POST", "/v1/interpreter:run", body)
}

// attach follows an execution from an event on.
func (a *agent) attach(id string, after int64) *stream {
	a.t.Helper()
	return a.follow("GET", "/v1/executions/"+id+"/events?after="+itoa(after), nil)
}

// next reads one event; io.EOF is the end.
func (s *stream) next() (api.Event, error) {
	line, err := s.lines.ReadBytes('\n')
	if err != nil {
		if len(line) > 0 {
			s.t.Errorf("a line was cut: %.200s", line)
		}
		return api.Event{}, err
	}
	s.raw.Write(line)
	var ev api.Event
	if err := json.Unmarshal(line, &ev); err != nil {
		return ev, fmt.Errorf("no event: %.200s: %w", line, err)
	}
	s.events = append(s.events, ev)
	return ev, nil
}

// until reads up to an event that is wanted.
func (s *stream) until(want func(api.Event) bool) api.Event {
	s.t.Helper()
	for {
		ev, err := s.next()
		if err != nil {
			s.t.Fatalf("%v after %s", err, tail(s.raw.String(), 1000))
		}
		if want(ev) {
			return ev
		}
	}
}

// text reads until the stream of that kind has said so.
func (s *stream) text(k api.Kind, text string) {
	s.t.Helper()
	all := ""
	s.until(func(ev api.Event) bool {
		if ev.K == k {
			all += ev.Text
		}
		return strings.Contains(all, text)
	})
}

// rest reads to the end, holds what must be true of any stream, and returns its
// Execution.
func (s *stream) rest() *api.Execution {
	s.t.Helper()
	for {
		if _, err := s.next(); err == io.EOF {
			break
		} else if err != nil {
			s.t.Fatalf("%v after %s", err, tail(s.raw.String(), 1000))
		}
	}
	if len(s.events) == 0 {
		s.t.Fatal("an empty stream")
	}
	id := s.res.Header.Get("Cellard-Execution")
	for i, ev := range s.events {
		// What is no event of the log has the number of the one before.
		own := ev.K != api.KindPing && (ev.Execution == nil || ev.Execution.Status != api.StatusRunning)
		if i > 0 && own && ev.Seq != s.events[i-1].Seq+1 {
			s.t.Errorf("%s has seq %d after %d", ev.K, ev.Seq, s.events[i-1].Seq)
		}
		last := i == len(s.events)-1
		if over := ev.K == api.KindExecution || ev.K == api.KindFailure; over != last {
			s.t.Errorf("event %d of %d is %s", i+1, len(s.events), ev.K)
		}
		if ev.ID != "" && ev.ID != id && ev.K != api.KindUpdate {
			s.t.Errorf("%s is of %s, not %s", ev.K, ev.ID, id)
		}
	}
	x := s.events[len(s.events)-1].Execution
	if x == nil {
		s.t.Fatalf("the last line is %s", tail(s.raw.String(), 500))
	}
	if x.ID != id {
		s.t.Errorf("the execution is %s, not %s", x.ID, id)
	}
	return x
}

// kinds are the events but pings, streams' pieces joined.
func (s *stream) kinds() string {
	var out []string
	for _, ev := range s.events {
		k := string(ev.K)
		if stream := k == "stdout" || k == "stderr"; ev.K == api.KindPing || stream && len(out) > 0 && out[len(out)-1] == k {
			continue
		}
		out = append(out, k)
	}
	return strings.Join(out, " ")
}

func (s *stream) stdout() string {
	var b strings.Builder
	for _, ev := range s.events {
		if ev.K == api.KindStdout {
			b.WriteString(ev.Text)
		}
	}
	return b.String()
}

func isKind(k api.Kind) func(api.Event) bool { return func(ev api.Event) bool { return ev.K == k } }
