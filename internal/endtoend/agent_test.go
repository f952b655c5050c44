package endtoend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/protocol/api"
)

// patience bounds what would else hang; it is no measure of speed.
const patience = 3 * time.Minute

// binaries are built once for all tests.
var binaries struct {
	dir     string
	tested  func() (string, error) // with the race detector, where the tests have it
	release func() (string, error) // as it is shipped
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cellard-endtoend-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binaries.dir = dir
	binaries.tested = sync.OnceValues(func() (string, error) {
		if raceDetector {
			return build("tested", []string{"CGO_ENABLED=1"}, "-race")
		}
		return build("tested", []string{"CGO_ENABLED=0"})
	})
	binaries.release = sync.OnceValues(func() (string, error) {
		return build("release", []string{"CGO_ENABLED=0"}, "-trimpath", "-ldflags", "-s -w")
	})
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func build(name string, env []string, flags ...string) (string, error) {
	out := filepath.Join(binaries.dir, name)
	return out, fixture.Build(out, env, flags...)
}

// config is how an agent is started; its zero value is right for most tests.
type config struct {
	binary    func() (string, error)
	python    string
	workspace string // empty: one of its own
	runtime   string
	socket    string
	args, env []string
	// command, if set, makes the command that starts the agent, which is then given no
	// --listen; socket is what it is to serve on.
	command func(binary string, args ...string) *exec.Cmd
}

// agent is a running agent.
type agent struct {
	t         *testing.T
	c         *exec.Cmd
	log       *fixture.Buffer
	socket    string
	workspace string
	runtime   string
	instance  string
	client    http.Client
	ended     chan struct{}
}

// start starts an agent, and has it stopped and looked at when the test ends.
func start(t *testing.T, o config) *agent {
	t.Helper()
	a := launch(t, o)
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if ans, err := a.try("GET", "/v1/health", nil); err == nil && ans.status == http.StatusOK {
			var h api.Health
			if err := json.Unmarshal(ans.body, &h); err != nil {
				t.Fatal(err)
			}
			a.instance = h.InstanceID
			return a
		} else if a.hasEnded() || time.Now().After(end) {
			t.Fatalf("the agent doesn't serve: %v\n%s", err, a.log)
		}
	}
}

// launch starts an agent without waiting until it serves.
func launch(t *testing.T, o config) *agent {
	t.Helper()
	if o.binary == nil {
		o.binary = binaries.tested
	}
	binary, err := o.binary()
	if err != nil {
		t.Fatal(err)
	}
	if o.python == "" {
		o.python = pythons.Newest(t)
	}
	if o.workspace == "" {
		o.workspace = fixture.Dir(t, 0o777)
	}
	if o.runtime == "" {
		o.runtime = fixture.Dir(t, 0o711)
	}
	if o.socket == "" {
		o.socket = filepath.Join(fixture.Dir(t, 0o755), "s")
	}
	a := &agent{t: t, log: &fixture.Buffer{}, socket: o.socket, workspace: o.workspace, runtime: o.runtime, ended: make(chan struct{})}
	a.client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", a.socket)
	}}
	args := append([]string{"--workspace", o.workspace, "--runtime-dir", o.runtime, "--python", o.python}, o.args...)
	if o.command != nil {
		a.c = o.command(binary, args...)
	} else {
		a.c = exec.Command(binary, append([]string{"serve", "--listen", "unix://" + o.socket}, args...)...)
	}
	a.c.Env = append(os.Environ(), o.env...)
	a.c.Stderr = a.log
	if err := a.c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = a.c.Wait(); close(a.ended) }()
	t.Cleanup(func() {
		if !a.hasEnded() {
			if a.signal(syscall.SIGTERM); !a.waitEnd() {
				_ = a.c.Process.Kill()
				<-a.ended
			}
			if code := a.c.ProcessState.ExitCode(); code != 0 {
				t.Errorf("the agent ended with %v", a.c.ProcessState)
			}
		}
		a.nothingLeft()
		if t.Failed() {
			t.Logf("the agent's log:\n%s", tail(a.log.String(), 8<<10))
		}
	})
	return a
}

func (a *agent) signal(s syscall.Signal) {
	if err := a.c.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		a.t.Error(err)
	}
}

func (a *agent) hasEnded() bool {
	select {
	case <-a.ended:
		return true
	default:
		return false
	}
}

func (a *agent) waitEnd() bool {
	a.t.Helper()
	select {
	case <-a.ended:
		return true
	case <-time.After(patience):
		a.t.Error("the agent doesn't end")
		return false
	}
}

// nothingLeft holds that of an agent that has ended no process and no file is left but
// those of the workspace.
func (a *agent) nothingLeft() {
	a.t.Helper()
	if a.instance != "" {
		a.eventually("its kernels and what they started are gone", func() error {
			if left := marked(a.instance); len(left) > 0 {
				return fmt.Errorf("processes %v are left", left)
			}
			return nil
		})
	}
	a.eventually("its runtime directory is empty", func() error {
		left, err := filepath.Glob(filepath.Join(a.runtime, "*"))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("left: %q", left)
		}
		return err
	})
	if log := a.log.String(); strings.Contains(log, "level=ERROR") || strings.Contains(log, `"level":"ERROR"`) || strings.Contains(log, "DATA RACE") {
		a.t.Errorf("the agent's log has errors:\n%s", tail(log, 8<<10))
	}
}

// marked are the processes that carry the mark of an instance's kernels.
func marked(instance string) []int { return withEnv("CELLARD_KERNEL=" + instance + "-") }

// withEnv are the processes that have a text in their environment.
func withEnv(text string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(text)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// eventually waits until check holds.
func (a *agent) eventually(what string, check func() error) {
	a.t.Helper()
	var err error
	for end := time.Now().Add(patience / 3); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	a.t.Errorf("not so: %s: %v", what, err)
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// object is a request's body.
type object map[string]any

// do makes a request and leaves the answer's body to the caller.
func (a *agent) do(ctx context.Context, method, path string, body any, headers ...string) (*http.Response, error) {
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case []byte:
		r = bytes.NewReader(b)
	default:
		j, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(j)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, r)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return a.client.Do(req)
}

func (a *agent) try(method, path string, body any, headers ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	res, err := a.do(ctx, method, path, body, headers...)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, b}, err
}

// call makes a request that must be answered.
func (a *agent) call(method, path string, body any, headers ...string) answer {
	a.t.Helper()
	ans, err := a.try(method, path, body, headers...)
	if err != nil {
		a.t.Fatalf("%s %s: %v", method, path, err)
	}
	return ans
}

// get asks for JSON and must get it.
func (a *agent) get(method, path string, body, into any) {
	a.t.Helper()
	ans := a.call(method, path, body)
	if ans.status != http.StatusOK {
		a.t.Fatalf("%s %s: HTTP %d: %.500s", method, path, ans.status, ans.body)
	}
	if err := json.Unmarshal(ans.body, into); err != nil {
		a.t.Fatalf("%s %s: %v: %.500s", method, path, err, ans.body)
	}
}

// refused makes a request that must be refused with that status and code.
func (a *agent) refused(status int, code api.Code, method, path string, body any, headers ...string) api.Error {
	a.t.Helper()
	ans := a.call(method, path, body, headers...)
	var e api.ErrorBody
	if err := json.Unmarshal(ans.body, &e); err != nil || e.Error == nil {
		a.t.Errorf("%s %s %v: HTTP %d: no error, but %.300s", method, path, body, ans.status, ans.body)
		return api.Error{}
	}
	if ans.status != status || e.Error.Code != code || e.Error.Message == "" || e.Error.Hint == "" {
		a.t.Errorf("%s %s %.200v: HTTP %d %+v, wanted %d %s", method, path, body, ans.status, e.Error, status, code)
	}
	return *e.Error
}

// run runs a cell.
func (a *agent) run(body object) *api.Execution {
	a.t.Helper()
	x, err := a.tryRun(body)
	if err != nil {
		a.t.Fatalf("%v: %v", body, err)
	}
	return x
}

func (a *agent) tryRun(body object) (*api.Execution, error) {
	ans, err := a.try("POST", "/v1/interpreter:run", body)
	if err != nil {
		return nil, err
	}
	if ans.status != http.StatusOK {
		return nil, fmt.Errorf("HTTP %d: %.500s", ans.status, ans.body)
	}
	x := &api.Execution{}
	return x, json.Unmarshal(ans.body, x)
}

// cell runs code that must go well, and returns the text of its value or, without one,
// its stdout.
func (a *agent) cell(contextID, code string) string {
	a.t.Helper()
	x := a.run(object{"context": contextID, "code": code})
	if x.Status != api.StatusOK {
		a.t.Fatalf("%s: %s", code, show(x))
	}
	for _, r := range x.Results {
		if r.Main {
			return plain(r)
		}
	}
	return x.Stdout
}

func (a *agent) execution(id string) *api.Execution {
	a.t.Helper()
	var x api.Execution
	a.get("GET", "/v1/executions/"+id, nil, &x)
	return &x
}

// ended asks for an execution until it is over.
func (a *agent) over(id string) *api.Execution {
	a.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if x := a.execution(id); x.Status != api.StatusRunning {
			return x
		} else if time.Now().After(end) {
			a.t.Fatalf("%s doesn't end: %s", id, show(x))
		}
	}
}

func (a *agent) context(id string) api.Context {
	a.t.Helper()
	var c api.Context
	a.get("GET", "/v1/interpreter/contexts/"+id, nil, &c)
	return c
}

// create makes a Python context.
func (a *agent) create(id string) api.Context {
	a.t.Helper()
	var c api.Context
	a.get("POST", "/v1/interpreter/contexts", object{"id": id}, &c)
	return c
}

func (a *agent) remove(id string) {
	a.t.Helper()
	var d struct{ Deleted bool }
	if a.get("DELETE", "/v1/interpreter/contexts/"+id, nil, &d); !d.Deleted {
		a.t.Errorf("%s: not deleted", id)
	}
}

func (a *agent) health() (h api.Health) {
	a.t.Helper()
	a.get("GET", "/v1/health", nil, &h)
	return h
}

func plain(r api.Result) string {
	var s string
	_ = json.Unmarshal(r.Data["text/plain"], &s)
	return s
}

func show(v any) string {
	b, _ := api.Marshal(v)
	return tail(string(b), 2000)
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }
