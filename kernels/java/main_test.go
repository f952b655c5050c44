package java

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/kernels/output"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

// patience bounds what must not hang; it is no measure of speed.
const patience = time.Minute

// reaper is the process's one.
var reaper *output.Reaper

func TestMain(m *testing.M) {
	reaper = output.NewReaper()
	code := m.Run()
	reaper.Close()
	if err := goleak.Find(); err != nil && code == 0 {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

// javas are the installations to test on: those of CELLARD_TEST_JAVA_HOMES, else that of
// JAVA_HOME or PATH and those where Debian has them.
func javas(t *testing.T) []*Java {
	t.Helper()
	homes := filepath.SplitList(os.Getenv("CELLARD_TEST_JAVA_HOMES"))
	if len(homes) == 0 {
		homes, _ = filepath.Glob("/usr/lib/jvm/*")
		if j, err := Find(os.Environ()); err == nil {
			homes = append(homes, j.Home)
		}
	}
	var found []*Java
	for _, home := range homes {
		j, err := At(filepath.Join(home, "bin", "java"))
		if err != nil || slices.ContainsFunc(found, func(k *Java) bool { return k.Home == j.Home }) {
			continue
		}
		found = append(found, j)
	}
	if len(found) == 0 {
		t.Fatal("there is no JDK of 17 or newer to test on: install one (scripts/setup-languages.sh), or name some in CELLARD_TEST_JAVA_HOMES")
	}
	return found
}

// onEach runs a test on each installation, with a session of its own.
func onEach(t *testing.T, f func(t *testing.T, s *session)) {
	for _, j := range javas(t) {
		t.Run(j.Version, func(t *testing.T) { f(t, start(t, Options{Java: j})) })
	}
}

// session is a kernel to run cells in.
type session struct {
	*Language
	count int
}

func start(t *testing.T, o Options) *session {
	t.Helper()
	o.Reaper = reaper
	if o.Env == nil {
		// A directory of its own, so that no archive of this machine's is used.
		o.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
	}
	s := &session{Language: New(o)}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.Info(); err != nil {
		t.Fatal(err)
	}
	return s
}

// run is a cell and what came of it.
type run struct {
	*kerneltest.Recorder
	err error
}

// cell runs a cell. Within is its deadline; none is a minute, past which the test fails.
func (s *session) cell(t *testing.T, code string, within time.Duration, set ...func(*kernel.Cell, *kerneltest.Recorder)) *run {
	t.Helper()
	r := &run{Recorder: &kerneltest.Recorder{}}
	c := kernel.NewCell(code, r.Recorder)
	s.count++
	c.Count = s.count
	for _, f := range set {
		f(c, r.Recorder)
	}
	bound := within
	if bound == 0 {
		bound = 2 * patience
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), bound, kernel.ErrInterrupted)
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.err = s.Execute(ctx, c)
	}()
	select {
	case <-over:
	case <-time.After(bound + patience):
		t.Fatalf("hangs: %s", code)
	}
	if within == 0 && ctx.Err() != nil {
		t.Fatalf("did not end: %s", code)
	}
	return r
}

// ok is a cell that must end well.
func (s *session) ok(t *testing.T, code string, set ...func(*kernel.Cell, *kerneltest.Recorder)) *run {
	t.Helper()
	r := s.cell(t, code, 0, set...)
	if r.err != nil {
		t.Errorf("%s: %v\n%s", code, r.err, r.trace())
	}
	return r
}

// is checks a cell's result as text.
func (s *session) is(t *testing.T, code, want string) {
	t.Helper()
	if got := s.ok(t, code).text(); got != want {
		t.Errorf("%s: %q, want %q", code, got, want)
	}
}

// fails checks the error that a cell ends with, by its name and what is in its value.
func (s *session) fails(t *testing.T, code, name, value string, set ...func(*kernel.Cell, *kerneltest.Recorder)) *run {
	t.Helper()
	r := s.cell(t, code, 0, set...)
	var e *kernel.Error
	if !errors.As(r.err, &e) || e.Name != name || !strings.Contains(e.Value, value) {
		t.Errorf("%s: %v, want %s: …%s…\n%s", code, r.err, name, value, r.trace())
	}
	return r
}

// text is the result's text/plain; "(none)" where there is no result.
func (r *run) text() string {
	shown := r.Shown("execute_result")
	if len(shown) != 1 {
		return "(none)"
	}
	text, _ := shown[0]["text/plain"].(string)
	return text
}

func (r *run) trace() string {
	var e *kernel.Error
	if errors.As(r.err, &e) {
		return strings.Join(e.Traceback, "\n")
	}
	return ""
}
