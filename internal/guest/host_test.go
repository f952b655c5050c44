package guest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/cellard/cellard/protocol/api"
)

// token is what init gives the agent as CELLARD_TOKEN, for cells to look for.
const token = "guest-secret"

// client is for HTTP with a port of the guest's.
func (m *machine) client(port int) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, m.uds, port) },
	}}
}

// dial goes in by the host's socket, as with Firecracker: CONNECT PORT, then OK, and
// nothing may be sent before that.
func dial(ctx context.Context, uds string, port int) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", uds)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	if _, err = fmt.Fprintf(c, "CONNECT %d\n", port); err == nil {
		var line string
		// Nothing follows the line before we ask, so nothing is read ahead.
		if line, err = bufio.NewReaderSize(c, 16).ReadString('\n'); err == nil && !strings.HasPrefix(line, "OK ") {
			err = fmt.Errorf("port %d of the guest: %q", port, line)
		}
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("vsock: %w", err)
	}
	return c, nil
}

// object is a request's body.
type object map[string]any

// open makes a request and leaves the answer's body to the caller.
func open(ctx context.Context, c *http.Client, method, path string, body any) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://guest"+path, r)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(req)
	if err == nil && res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		return nil, fmt.Errorf("%s %s: HTTP %d: %.500s", method, path, res.StatusCode, b)
	}
	return res, err
}

// askContext makes a request and decodes the answer's JSON.
func askContext(ctx context.Context, c *http.Client, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	res, err := open(ctx, c, method, path, body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

func ask(c *http.Client, method, path string, body, into any) error {
	return askContext(context.Background(), c, method, path, body, into)
}

func fetch(c *http.Client, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	res, err := open(ctx, c, "GET", path, nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

// ready waits until the agent serves.
func (m *machine) ready() {
	m.t.Helper()
	var h api.Health
	m.eventually("the agent serves", func() error { return ask(m.agent, "GET", "/v1/health", nil, &h) })
	if h.Status != "ok" {
		m.t.Errorf("health: %+v", h)
	}
}

// run runs a cell.
func (m *machine) run(body object) *api.Execution {
	m.t.Helper()
	x := &api.Execution{}
	if err := ask(m.agent, "POST", "/v1/interpreter:run", body, x); err != nil {
		m.t.Fatalf("%v: %v", body, err)
	}
	return x
}

// value runs code that must go well, and returns the text of its value.
func (m *machine) value(code string) string {
	m.t.Helper()
	x := m.run(object{"code": code})
	if x.Status != api.StatusOK {
		m.t.Fatalf("%s: %s", code, show(x))
	}
	return plain(x)
}

// stream runs a cell and gives its events as they come. The channel ends with the
// stream; stop cuts it off.
func (m *machine) stream(body object) (events <-chan api.Event, stop func()) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	res, err := open(ctx, m.agent, "POST", "/v1/interpreter:run", body)
	if err != nil {
		cancel()
		m.t.Fatalf("%v: %v", body, err)
	}
	out := make(chan api.Event)
	go func() {
		defer close(out)
		defer res.Body.Close()
		d := json.NewDecoder(res.Body)
		for {
			var e api.Event
			if d.Decode(&e) != nil {
				return
			}
			select {
			case out <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, func() {
		cancel()
		for range out { // until its goroutine has ended
		}
	}
}

// exec runs a program in the guest as root, and returns what it wrote.
func (m *machine) exec(argv ...string) string {
	m.t.Helper()
	var r struct {
		Out  string
		Code int
	}
	if err := ask(m.control, "POST", "/exec", object{"argv": argv}, &r); err != nil {
		m.t.Fatalf("%q: %v", argv, err)
	}
	return r.Out
}

// agentState is how init's control sees the agent.
type agentState struct {
	Pid, Code int
	Ended     bool
}

func (m *machine) agentState() (a agentState) {
	m.t.Helper()
	if err := ask(m.control, "GET", "/agent", nil, &a); err != nil {
		m.t.Fatal(err)
	}
	return a
}

// process is one of the guest's.
type process struct {
	Pid, Parent, UID, OOMScoreAdj int
	State, Command                string
}

func (m *machine) processes() (all []process) {
	m.t.Helper()
	if err := ask(m.control, "GET", "/processes", nil, &all); err != nil {
		m.t.Fatal(err)
	}
	if len(all) == 0 {
		m.t.Fatal(errors.New("no process runs"))
	}
	return all
}

// plain is the text of the cell's value.
func plain(x *api.Execution) string {
	for _, r := range x.Results {
		if r.Main {
			var s string
			_ = json.Unmarshal(r.Data["text/plain"], &s)
			return s
		}
	}
	return ""
}

func show(v any) string {
	b, _ := api.Marshal(v)
	return string(b[max(0, len(b)-2000):])
}
