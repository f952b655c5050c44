package node

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what must not hang; it is no measure of speed.
const patience = time.Minute

// nodes are the programs to test on, by name.
func nodes(t testing.TB) []string {
	t.Helper()
	if list := os.Getenv("CELLARD_TEST_NODES"); list != "" {
		return strings.Split(list, ":")
	}
	var found []string
	for _, major := range []string{"20", "24"} {
		c := exec.Command(filepath.Join("..", "..", "scripts", "setup-node.sh"), major)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("setup-node.sh %s: %v", major, err)
		}
		found = append(found, strings.TrimSpace(string(out)))
	}
	return found
}

// each runs a test on every Node.
func each(t *testing.T, test func(t *testing.T, program string)) {
	for _, program := range nodes(t) {
		out, err := exec.Command(program, "--version").Output()
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSpace(string(out)), func(t *testing.T) { test(t, program) })
	}
}

// session is a kernel under test.
type session struct {
	t     *testing.T
	k     *Kernel
	count int
}

func open(t *testing.T, language, program string) *session {
	t.Helper()
	k := New(Options{Language: language, Program: program})
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := k.Info(); err != nil {
		t.Fatal(err)
	}
	return &session{t: t, k: k}
}

// ran is what came of a cell.
type ran struct {
	*kerneltest.Recorder
	t   *testing.T
	err error
}

// run runs a cell; set may change it before.
func (s *session) run(code string, set ...func(*kernel.Cell)) *ran {
	return s.within(patience, code, set...)
}

// asked runs a cell that gets answers to what it asks.
func (s *session) asked(answers []string, code string) *ran {
	s.t.Helper()
	return s.record(&kerneltest.Recorder{Answers: answers}, patience, code, func(c *kernel.Cell) { c.AllowStdin = true })
}

// within runs a cell with a deadline.
func (s *session) within(d time.Duration, code string, set ...func(*kernel.Cell)) *ran {
	s.t.Helper()
	return s.record(&kerneltest.Recorder{}, d, code, set...)
}

func (s *session) record(r *kerneltest.Recorder, d time.Duration, code string, set ...func(*kernel.Cell)) *ran {
	s.t.Helper()
	s.count++
	c := kernel.NewCell(code, r)
	c.Count = s.count
	for _, f := range set {
		f(c)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), d, kernel.ErrInterrupted)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.k.Execute(ctx, c) }()
	select {
	case err := <-ended:
		return &ran{r, s.t, err}
	case <-time.After(d + patience):
		s.t.Fatalf("the cell did not end: %s", code)
		return nil
	}
}

// text wants the cell to end well, and its value to be shown so; "" for none.
func (r *ran) text(want string) *ran {
	r.t.Helper()
	r.ok()
	got := ""
	if shown := r.Shown("execute_result"); len(shown) > 0 {
		got, _ = shown[0]["text/plain"].(string)
	}
	if got != want {
		r.t.Errorf("the value is %q, wanted %q", got, want)
	}
	return r
}

func (r *ran) ok() *ran {
	r.t.Helper()
	if r.err != nil {
		r.t.Errorf("ended with %s; stderr %q", told(r.err), r.Stream("stderr"))
	}
	return r
}

func (r *ran) out(stdout, stderr string) *ran {
	r.t.Helper()
	if got := r.Stream("stdout"); got != stdout {
		r.t.Errorf("stdout %q, wanted %q", got, stdout)
	}
	if got := r.Stream("stderr"); got != stderr {
		r.t.Errorf("stderr %q, wanted %q", got, stderr)
	}
	return r
}

// failed wants an error of that name with these texts in its value or traceback.
func (r *ran) failed(name string, has ...string) *ran {
	r.t.Helper()
	var e *kernel.Error
	if !errors.As(r.err, &e) {
		r.t.Errorf("ended with %v, wanted %s", r.err, name)
		return r
	}
	if e.Name != name {
		r.t.Errorf("ended with %s, wanted %s", told(r.err), name)
	}
	for _, text := range has {
		if !strings.Contains(e.Value+"\n"+strings.Join(e.Traceback, "\n"), text) {
			r.t.Errorf("no %q in %s", text, told(r.err))
		}
	}
	return r
}

// stopped wants the cell to have been interrupted.
func (r *ran) stopped() *ran {
	r.t.Helper()
	if !errors.Is(r.err, kernel.ErrInterrupted) {
		r.t.Errorf("ended with %s, wanted an interrupt; stderr %q", told(r.err), r.Stream("stderr"))
	}
	return r
}

func told(err error) string {
	var e *kernel.Error
	if errors.As(err, &e) {
		return e.Error() + "\n" + strings.Join(e.Traceback, "\n")
	}
	if err == nil {
		return "no error"
	}
	return err.Error()
}
