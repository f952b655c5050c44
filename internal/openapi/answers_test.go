package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/internal/testagent"
	"github.com/cellard/cellard/protocol/api"
)

// patience bounds what would else hang.
const patience = 2 * time.Minute

// checked makes requests of a real agent, and holds each answer against the document.
type checked struct {
	t        *testing.T
	d        *document
	base     string
	client   http.Client
	patterns map[string]*regexp.Regexp // by path
	seen     map[string]bool           // "METHOD path status"
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// object decodes an answer's JSON.
func (a answer) object(t *testing.T) (m map[string]any) {
	t.Helper()
	if err := json.Unmarshal(a.body, &m); err != nil {
		t.Fatalf("%v: %.200s", err, a.body)
	}
	return m
}

var variable = regexp.MustCompile(`\\\{\w+\\\}`)

func newChecked(t *testing.T, socket string) *checked {
	c := &checked{t: t, d: load(t), base: "http://agent", patterns: map[string]*regexp.Regexp{}, seen: map[string]bool{}}
	for p := range c.d.root["paths"].(map[string]any) {
		c.patterns[p] = regexp.MustCompile("^" + variable.ReplaceAllString(regexp.QuoteMeta(p), "[^/:]+") + "$")
	}
	c.client = http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
	return c
}

// do makes a request; an object is a body whose schema is checked too, a string one that
// is sent as it is.
func (c *checked) do(want int, method, target string, body any, headers ...string) answer {
	c.t.Helper()
	var b []byte
	switch v := body.(type) {
	case nil:
	case string:
		b = []byte(v)
	default:
		b, _ = json.Marshal(v)
	}
	req, err := http.NewRequest(method, c.base+target, bytes.NewReader(b))
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.client.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	a := answer{status: res.StatusCode, header: res.Header}
	if a.body, err = io.ReadAll(res.Body); err != nil {
		c.t.Fatal(err)
	}
	if a.status != want {
		c.t.Errorf("%s %s: %d in place of %d: %.300s", method, target, a.status, want, a.body)
	}
	if err := c.check(method, req.URL.Path, b, body, a); err != nil {
		c.t.Errorf("%s %s %d: %v\n%.500s", method, target, a.status, err, a.body)
	}
	return a
}

func (c *checked) check(method, target string, sent []byte, body any, a answer) error {
	for p, re := range c.patterns {
		operation := c.d.at(c.d.root, "paths", p, strings.ToLower(method))
		if !re.MatchString(target) || operation == nil {
			continue
		}
		if _, raw := body.(string); !raw && body != nil {
			request := c.d.at(operation, "requestBody", "content", "application/json", "schema")
			if request == nil {
				return fmt.Errorf("it takes no body")
			}
			if err := c.valid([]string{"paths", p, strings.ToLower(method), "requestBody", "content", "application/json", "schema"}, sent); err != nil {
				return fmt.Errorf("the request: %w", err)
			}
		}
		status := strconv.Itoa(a.status)
		c.seen[method+" "+p+" "+status] = true
		if c.d.at(operation, "responses", status) == nil {
			status = "default"
		}
		mimeType, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
		if c.d.at(operation, "responses", status, "content", "application/octet-stream") != nil {
			return nil // of the ref's own type
		}
		at := []string{"paths", p, strings.ToLower(method), "responses", status, "content", mimeType}
		if c.d.at(c.d.root, at...) == nil {
			return fmt.Errorf("no answer of type %s is described", mimeType)
		}
		for _, h := range slices.Sorted(maps.Keys(asMap(c.d.at(operation, "responses", status, "headers")))) {
			if a.header.Get(h) == "" {
				return fmt.Errorf("no header %s", h)
			}
		}
		switch mimeType {
		case "application/x-ndjson":
			for line := range bytes.Lines(a.body) {
				if err := c.valid(append(at, "schema"), line); err != nil {
					return err
				}
			}
			return nil
		case "text/plain":
			return nil
		}
		return c.valid(append(at, "schema"), a.body)
	}
	return fmt.Errorf("not described")
}

func asMap(v any) map[string]any { m, _ := v.(map[string]any); return m }

// valid finds the schema at a place by following $refs, and holds b against it.
func (c *checked) valid(at []string, b []byte) error {
	place := c.place("#", c.d.root, at)
	s, err := c.d.schemas.Compile(where + place)
	if err != nil {
		return err
	}
	return validate(s, b)
}

func (c *checked) place(pointer string, v any, keys []string) string {
	for {
		m := asMap(v)
		if ref, ok := m["$ref"].(string); ok {
			pointer, v = ref, c.d.at(c.d.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			continue
		}
		if len(keys) == 0 {
			return pointer
		}
		escaped := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(keys[0])
		pointer, v, keys = pointer+"/"+escaped, m[keys[0]], keys[1:]
	}
}

type object = map[string]any

// later are answers that the document promises and no language gives yet.
var later = []string{
	"POST /v1/interpreter/contexts/{id}:fork 200",
	"POST /v1/interpreter/contexts/{id}:rollback 200",
}

// Every status of every route, from a real agent.
func TestAnswers(t *testing.T) {
	python := pythons.Newest(t)
	dir := t.TempDir()
	spec := func(name string, argv ...string) {
		p := filepath.Join(dir, "kernels", name)
		b, _ := json.Marshal(object{"argv": argv, "display_name": name, "language": name})
		if err := os.MkdirAll(p, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p, "kernel.json"), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	gate := filepath.Join(dir, "open")
	spec("broken", "/bin/sh", "-c", "echo no luck >&2; exit 3", "{connection_file}")
	spec("fickle", "/bin/sh", "-c", "[ -e "+gate+" ] && exec "+python+` -m ipykernel_launcher -f "$0"`, "{connection_file}")
	for _, p := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JUPYTER_PATH", dir)
	binary, err := testagent.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := testagent.Start(binary, python, "--max-contexts", "3", "--max-queue", "1", "--max-body", "64KiB",
		"--retention-memory", "200KiB", "--store-quota", "1MiB", "--ping", "100ms")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := agent.Stop(); err != nil {
			t.Error(err)
		}
	}()
	c := newChecked(t, strings.TrimPrefix(agent.Unix, "unix://"))
	c.agentItself(agent)
	c.cells()
	c.contexts(gate)
	c.results()

	for _, op := range c.d.operations() {
		method, p, _ := strings.Cut(op, " ")
		for status := range asMap(c.d.at(c.d.root, "paths", p, strings.ToLower(method), "responses")) {
			k := op + " " + status
			if status != "default" && c.seen[k] == slices.Contains(later, k) {
				t.Errorf("%s: seen: %v", k, c.seen[k])
			}
		}
	}
	var undescribed []string
	for k := range c.seen {
		if p := strings.Split(k, " "); c.d.at(c.d.root, "paths", p[1], strings.ToLower(p[0]), "responses", p[2]) == nil {
			undescribed = append(undescribed, k)
		}
	}
	sort.Strings(undescribed)
	t.Logf("by default: %v", undescribed)
}

func (c *checked) agentItself(agent *testagent.Agent) {
	c.do(200, "GET", "/v1/health", nil)
	c.do(200, "GET", "/metrics", nil)
	c.do(200, "GET", "/v1/languages", nil)
	tcp := newChecked(c.t, "")
	tcp.base, tcp.client.Transport = agent.TCP, &http.Transport{DisableKeepAlives: true}
	tcp.do(401, "GET", "/v1/health", nil)
	tcp.do(200, "GET", "/v1/health", nil, "Authorization", "Bearer "+agent.Token)
}

const run = "/v1/interpreter:run"

func (c *checked) cells() {
	x := c.do(200, "POST", run, object{"code": "print(1)\n2", "timeoutMs": 60000, "env": object{"A": "b"}, "cwd": "/", "stdin": []string{"x"}}).object(c.t)
	c.do(200, "POST", run, object{"code": "1/0", "language": "python", "context": "python"})
	c.do(200, "POST", run, object{"code": "import sys, time\nfrom IPython.display import *\nprint('e', file=sys.stderr)\nd = display(1, display_id='d')\nd.update(2)\ndisplay(3, metadata={'text/plain': {'isolated': True}})\n" +
		"clear_output(wait=True)\ntime.sleep(1)\n1/0", "stream": true})
	c.do(200, "POST", run, object{"code": "import os; os.kill(os.getpid(), 9)"})
	id := x["id"].(string)
	c.do(200, "GET", "/v1/executions/"+id, nil)
	c.do(200, "GET", "/v1/executions/"+id+"/events?after=1", nil)
	c.do(400, "GET", "/v1/executions/"+id+"/events?after=99", nil)
	c.do(200, "POST", "/v1/executions/"+id+":interrupt", nil)
	c.do(409, "POST", "/v1/executions/"+id+":input", object{"value": "v"})
	c.do(422, "POST", "/v1/executions/"+id+":input", "{}")
	for _, r := range []struct{ method, path string }{{"GET", ""}, {"GET", "/events"}, {"POST", ":interrupt"}, {"POST", ":input"}} {
		var body any
		if r.path == ":input" {
			body = object{"value": "v"}
		}
		c.do(404, r.method, "/v1/executions/none"+r.path, body)
	}

	wait := c.do(200, "POST", run, object{"code": "input('? ')", "stdin": "live", "waitMs": 0, "interruptOnDisconnect": false}).object(c.t)["id"].(string)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if a := c.do(200, "GET", "/v1/executions/"+wait, nil); a.object(c.t)["executionCount"].(float64) > 0 || time.Now().After(end) {
			break
		}
	}
	c.do(200, "POST", run, object{"code": "'waits'", "waitMs": 0, "interruptOnDisconnect": false})
	c.do(429, "POST", run, object{"code": "'one too many'"})
	for status := 0; status != 200; { // until it asks
		res, err := c.client.Post(c.base+"/v1/executions/"+wait+":input", "", strings.NewReader(`{"value":"late"}`))
		if err != nil {
			c.t.Fatal(err)
		}
		res.Body.Close()
		status = res.StatusCode
		c.seen["POST /v1/executions/{id}:input 200"] = status == 200
	}
	c.do(200, "GET", "/v1/executions/"+wait+"/events", nil)

	c.do(400, "POST", run, object{"code": "1", "language": "python", "context": "r"})
	c.do(404, "POST", run, object{"code": "1", "context": "none"})
	c.do(409, "POST", run, object{"code": "1", "ifGeneration": 99})
	c.do(413, "POST", run, object{"code": strings.Repeat("#", 70<<10)})
	c.do(422, "POST", run, `{"code":1}`)
	failed := c.do(502, "POST", run, object{"code": "1", "language": "broken"})
	c.do(502, "GET", "/v1/executions/"+failed.header.Get("Cellard-Execution"), nil)
	c.do(200, "POST", run, object{"code": "1", "language": "broken", "stream": true})

	c.do(200, "POST", run, object{"code": "1"}, "Idempotency-Key", "k")
	for range 6 { // what is kept of executions is pushed out
		c.do(200, "POST", run, object{"code": "print('x' * 100_000)"})
	}
	c.do(410, "POST", run, object{"code": "1"}, "Idempotency-Key", "k")
}

const contexts = "/v1/interpreter/contexts"

func (c *checked) contexts(gate string) {
	c.do(200, "POST", contexts, object{"id": "mine", "language": "python", "cwd": "/", "env": object{"A": "b"}})
	c.do(409, "POST", contexts, object{"id": "mine"})
	c.do(400, "POST", contexts, object{"id": "other", "cwd": "/no/such/directory"})
	c.do(404, "POST", contexts, object{"id": "other", "language": "no-such-language"})
	c.do(400, "POST", contexts, `{"id":1}`)
	c.do(502, "POST", contexts, object{"id": "other", "language": "broken"})
	c.do(200, "GET", contexts, nil)
	c.do(200, "GET", contexts+"/mine", nil)
	c.do(200, "POST", contexts, object{"id": "fickle", "language": "fickle"})
	c.do(409, "GET", contexts+"/fickle/variables", nil)
	c.do(429, "POST", contexts, object{"id": "other"})
	if err := os.Remove(gate); err != nil {
		c.t.Fatal(err)
	}
	c.do(502, "POST", contexts+"/fickle:restart", nil)
	c.do(200, "DELETE", contexts+"/fickle", nil)
	c.do(200, "POST", contexts+"/mine:restart", nil)
	c.do(200, "POST", contexts+"/mine:interrupt", nil)
	c.do(409, "POST", contexts+"/mine:fork", object{"id": "copy"})
	c.do(409, "POST", contexts+"/mine:rollback", object{"steps": 1})
	for _, q := range []string{":complete", ":inspect", ":isComplete"} {
		c.do(200, "POST", contexts+"/mine"+q, object{"code": "import os; os.path", "cursor": 3, "detail": 1})
		c.do(422, "POST", contexts+"/mine"+q, "{}")
		c.do(404, "POST", contexts+"/none"+q, object{"code": ""})
	}
	c.do(200, "POST", run, object{"code": "x, y = 1, [2]", "context": "mine"})
	c.do(200, "GET", contexts+"/mine/variables", nil)
	c.do(200, "GET", contexts+"/mine/notebook", nil)
	for _, r := range []struct{ method, path string }{{"GET", ""}, {"DELETE", ""}, {"POST", ":restart"}, {"POST", ":interrupt"},
		{"POST", ":fork"}, {"POST", ":rollback"}, {"GET", "/variables"}, {"GET", "/notebook"}, {"GET", "/results/f"}} {
		c.do(404, r.method, contexts+"/none"+r.path, nil)
	}
}

func (c *checked) results() {
	show := object{"code": "import os, base64\nfrom IPython.display import display\ndisplay({'image/png': base64.b64encode(os.urandom(600_000)).decode()}, raw=True)"}
	var urls []string
	for range 2 {
		x := c.do(200, "POST", run, show)
		var e api.Execution
		if err := json.Unmarshal(x.body, &e); err != nil || len(e.Results) != 1 {
			c.t.Fatalf("%.300s", x.body)
		}
		urls = append(urls, contexts+"/python/results/"+path.Base(e.Results[0].Refs["image/png"].Path))
	}
	c.do(200, "GET", urls[1], nil)
	c.do(206, "GET", urls[1], nil, "Range", "bytes=0-9")
	c.do(410, "GET", urls[0], nil)
}
