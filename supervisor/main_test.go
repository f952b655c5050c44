package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/fakekernel"
	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/api"
)

// TestMain is also the kernel, the keeper and the agent that is killed: this binary
// started again. After the tests nothing may be left of them.
func TestMain(m *testing.M) {
	switch {
	case fakekernel.Wanted():
		fakekernel.Main()
	case len(os.Args) == 5 && os.Args[1] == "keeper":
		Keeper(os.Stdin, os.Args[2], os.Args[3], os.Args[4])
		os.Exit(0)
	case len(os.Args) == 3 && os.Args[1] == "agent":
		agentMain(os.Args[2])
	}
	files := openFiles()
	spawn = newSpawner()
	code := m.Run()
	spawn.Close()
	if code == 0 {
		if err := nothingLeft(files); err != nil {
			fmt.Fprintln(os.Stderr, "after the tests:", err)
			code = 1
		}
	}
	os.Exit(code)
}

var spawn *spawner // for all tests

func nothingLeft(files map[string]bool) error {
	// The runtime's own reader of signals stays once signal.Notify was called.
	if err := goleak.Find(goleak.IgnoreTopFunction("os/signal.signal_recv"), goleak.IgnoreTopFunction("os/signal.loop")); err != nil {
		return err
	}
	if c := procfs.Children(os.Getpid()); len(c) > 0 {
		return fmt.Errorf("children: %+v", c)
	}
	for f := range openFiles() {
		if !files[f] && !strings.HasPrefix(f, "anon_inode:") { // the poller's
			return fmt.Errorf("%s is open", f)
		}
	}
	return nil
}

func openFiles() map[string]bool {
	names, _ := os.ReadDir("/proc/self/fd")
	open := map[string]bool{}
	for _, n := range names {
		if to, err := os.Readlink("/proc/self/fd/" + n.Name()); err == nil {
			open[to] = true
		}
	}
	return open
}

// patience bounds what must happen: it is no measure of how fast it does.
const patience = 2 * time.Minute

// agent is a Manager under test.
type agent struct {
	*Manager
	t    *testing.T
	logs *fixture.Buffer
}

// specs are the kernelspecs that there are: each starts the fake kernel in its own way.
var specs = map[string]string{
	"fake":         fakekernel.StartWell,
	"silent":       fakekernel.StartSilentHandshake,
	"garbage":      fakekernel.StartGarbageGreeting,
	"wrong-type":   fakekernel.StartWrongSocketType,
	"no-info":      fakekernel.StartNoKernelInfoReply,
	"no-iopub":     fakekernel.StartNoIOPub,
	"dies":         fakekernel.StartDieAtStart,
	"dies-greeted": fakekernel.StartDieAfterHandshake,
	"slow":         fakekernel.StartSlow + " 3600000",
	"later":        fakekernel.StartSlow + " 300",
	"welcome":      fakekernel.StartWelcome,
	"lists":        fakekernel.StartVariables,
}

// options are those of a Manager that runs the fake kernel, in directories of its own.
func options(dir string) Options {
	return Options{Workspace: filepath.Join(dir, "w"), RuntimeDir: filepath.Join(dir, "r"),
		spawn: spawn, User: strconv.Itoa(os.Getuid()), Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "JUPYTER_PATH=" + filepath.Join(dir, "j")}}
}

func writeSpecs(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for name, start := range specs {
		for _, kind := range []string{"", "-message", "-tcp"} {
			// The catalogue gives ipc, and the nudge, to what looks like ipykernel.
			argv := []string{self, "-f", "{connection_file}", "ipykernel"}
			mode := "signal"
			if kind == "-message" {
				mode = "message"
			}
			if kind == "-tcp" {
				argv = argv[:3]
			}
			text, _ := json.Marshal(map[string]any{"argv": argv, "display_name": name, "language": "fake",
				"interrupt_mode": mode, "env": map[string]string{fakekernel.Env: start}})
			to := filepath.Join(dir, "j", "kernels", name+kind)
			if err := os.MkdirAll(to, 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(to, "kernel.json"), text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// newAgent starts a Manager. At the test's end it is shut down, and nothing of it
// may be left.
func newAgent(t *testing.T, set func(*Options)) *agent {
	t.Helper()
	dir, err := os.MkdirTemp("", "cellard") // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "w"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeSpecs(dir); err != nil {
		t.Fatal(err)
	}
	a := &agent{t: t, logs: &fixture.Buffer{}}
	o := options(dir)
	o.Logger = slog.New(slog.NewTextHandler(a.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if set != nil {
		set(&o)
	}
	if a.Manager, err = NewManager(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := a.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		a.Close()
		if n, _ := a.Health(); n != 0 {
			t.Errorf("%d cells are counted as running after Shutdown", n)
		}
		if left := a.processes(); len(left) > 0 {
			t.Errorf("processes left: %+v", left)
		}
		if _, err := os.Stat(o.RuntimeDir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the runtime directory is left: %v", err)
		}
		if t.Failed() {
			t.Logf("log:\n%s", a.logs)
		}
	})
	return a
}

// processes are those that came from the agent's kernels.
func (a *agent) processes() []procfs.Stat {
	var left []procfs.Stat
	for _, p := range procfs.All() {
		if p.State != 'Z' && procfs.HasMarkPrefix(p.PID, "CELLARD_KERNEL="+a.InstanceID()+"-") {
			left = append(left, p)
		}
	}
	return left
}

// kernelDirs are the private directories of kernels.
func (a *agent) kernelDirs() []string {
	dirs, _ := filepath.Glob(filepath.Join(a.o.RuntimeDir, "*"))
	return dirs
}

type with func(*api.RunRequest)

func timeout(d time.Duration) with {
	return func(r *api.RunRequest) { ms := d.Milliseconds(); r.TimeoutMs = &ms }
}
func in(id string) with         { return func(r *api.RunRequest) { r.Context, r.Language = id, "" } }
func language(l string) with    { return func(r *api.RunRequest) { r.Language = l } }
func key(k string) with         { return func(r *api.RunRequest) { r.IdempotencyKey = k } }
func generation(g int) with     { return func(r *api.RunRequest) { r.IfGeneration = &g } }
func answers(a ...string) with  { return func(r *api.RunRequest) { r.Stdin = &api.Stdin{Answers: a} } }
func live(r *api.RunRequest)    { r.Stdin = &api.Stdin{Live: true} }
func interruptGone(b bool) with { return func(r *api.RunRequest) { r.InterruptOnDisconnect = &b } }
func lines(l ...string) string  { return strings.Join(l, "\n") }
func request(code string, set ...with) api.RunRequest {
	r := api.RunRequest{Code: code, Language: "fake"}
	for _, f := range set {
		f(&r)
	}
	return r
}

// queue runs a cell and does not wait for its end.
func (a *agent) queue(code string, set ...with) *Run {
	a.t.Helper()
	r, err := a.Run(request(code, set...))
	if err != nil {
		a.t.Fatalf("run %q: %v", code, err)
	}
	return r
}

// end waits for an execution's end.
func (a *agent) end(r *Run) api.Execution {
	a.t.Helper()
	x, refused := a.outcome(r)
	if refused != nil {
		a.t.Fatalf("refused: %v", refused)
	}
	return x
}

func (a *agent) outcome(r *Run) (api.Execution, *api.Error) {
	a.t.Helper()
	select {
	case <-r.Done():
	case <-time.After(patience):
		x, _ := r.Snapshot()
		a.t.Fatalf("the execution did not end: %+v\n%s", x, a.logs)
	}
	return r.Snapshot()
}

// cell runs a cell to its end.
func (a *agent) cell(code string, set ...with) api.Execution {
	a.t.Helper()
	r := a.queue(code, set...)
	x := a.end(r)
	r.Leave(false)
	return x
}

// events are all of an execution that has ended.
func (a *agent) events(r *Run) []api.Event {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all []api.Event
	for rd := r.Events(0); ; {
		b, err := rd.Next(ctx)
		if err == io.EOF {
			return all
		}
		if err != nil {
			a.t.Fatalf("events: %v", err)
		}
		for _, line := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
			var ev api.Event
			if err := json.Unmarshal(line, &ev); err != nil {
				a.t.Fatalf("event %q: %v", line, err)
			}
			all = append(all, ev)
		}
	}
}

// shows waits until the cell's stdout holds text: then it runs, and got there.
func (a *agent) shows(r *Run, text string) {
	a.t.Helper()
	a.until("stdout has "+text, func() bool {
		x, refused := r.Snapshot()
		if refused != nil {
			a.t.Fatalf("refused: %v", refused)
		}
		return strings.Contains(x.Stdout, text)
	})
}

func (a *agent) until(what string, is func() bool) {
	a.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(3 * time.Millisecond) {
		if time.Now().After(end) {
			a.t.Fatalf("never: %s\n%s", what, a.logs)
		}
	}
}

// main1 is the text of the cell's own result.
func main1(x api.Execution) string {
	for _, r := range x.Results {
		if r.Main {
			var s string
			_ = json.Unmarshal(r.Data["text/plain"], &s)
			return s
		}
	}
	return ""
}

// ok fails the test unless the cell ran well on the kernel that it expected.
func (a *agent) ok(x api.Execution) {
	a.t.Helper()
	if x.Status != api.StatusOK || x.Error != nil || x.State != api.StateKept || x.Lost != nil || x.Incomplete {
		a.t.Errorf("want ok with state kept, got %s", show(x))
	}
}

func (a *agent) is(x api.Execution, status api.Status, state api.State, name string) {
	a.t.Helper()
	got := ""
	if x.Error != nil {
		got = x.Error.Name
	}
	if x.Status != status || x.State != state || got != name {
		a.t.Errorf("want %s, state %s, error %q; got %s", status, state, name, show(x))
	}
}

// lostBy checks a cell that lost its kernel.
func (a *agent) lostBy(x api.Execution, reason api.LostReason, signal string, code int) {
	a.t.Helper()
	if x.Status != api.StatusLost || x.State != api.StateLost || x.Lost == nil || x.Lost.Reason != reason {
		a.t.Fatalf("want lost by %s, got %s", reason, show(x))
	}
	if s := x.Lost.Signal; (s == nil) != (signal == "") || s != nil && *s != signal {
		a.t.Errorf("want signal %q, got %s", signal, show(x))
	}
	if c := x.Lost.ExitCode; (c == nil) != (code < 0) || c != nil && *c != code {
		a.t.Errorf("want exit code %d, got %s", code, show(x))
	}
}

func show(x api.Execution) string {
	if len(x.Stdout) > 1000 {
		x.Stdout = x.Stdout[:1000] + "…"
	}
	b, _ := json.Marshal(x)
	return string(b)
}

// code is the refusal's code.
func code(err error) api.Code {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// fresh checks that the context works, on a kernel started for this cell.
func (a *agent) fresh(generation int, set ...with) {
	a.t.Helper()
	x := a.cell("print again", set...)
	a.ok(x)
	if !x.ContextStarted || x.Generation != generation || x.Stdout != "again\n" {
		a.t.Errorf("want a fresh kernel of generation %d, got %s", generation, show(x))
	}
}

// kept checks that the context's kernel and its state are still those of the first.
func (a *agent) kept(set ...with) {
	a.t.Helper()
	x := a.cell("get x", set...)
	a.ok(x)
	if main1(x) != "1" || x.Generation != 1 || x.ContextStarted {
		a.t.Errorf("want the state of generation 1, got %s", show(x))
	}
}

// context makes a context of the fake kernel, whose first cell is then not the one
// that starts the kernel.
func (a *agent) context(id string, set ...func(*api.ContextRequest)) api.Context {
	a.t.Helper()
	req := api.ContextRequest{ID: id, Language: "fake"}
	for _, f := range set {
		f(&req)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := a.CreateContext(ctx, req)
	if err != nil {
		a.t.Fatalf("context %s: %v\n%s", id, err, a.logs)
	}
	return c
}

// reaped reports whether no orphan waits to be reaped: a child of another session than
// the tests' own, whose other children are waited for by who started them.
func reaped() bool {
	own, _ := unix.Getsid(0)
	for _, p := range procfs.Children(os.Getpid()) {
		if p.State == 'Z' && p.Session != own {
			return false
		}
	}
	return true
}
