package golang_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/internal/gocache"
	"github.com/cellard/cellard/kernels/golang"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

func TestMain(m *testing.M) {
	// No cell of a test has to wait for the build.
	if err := gocache.Setup(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// session is a kernel under test.
type session struct {
	t *testing.T
	k *golang.Kernel
	n int
}

func start(t *testing.T) *session {
	t.Helper()
	k, err := golang.New(toolchain(t), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return &session{t: t, k: k}
}

// toolchain is the one that the tests run on.
func toolchain(t *testing.T) *golang.Toolchain {
	t.Helper()
	tool, err := golang.NewFinder(golang.FinderOptions{}).Find(t.Context())
	if err != nil {
		t.Fatalf("these tests need Go 1.22 or newer and gcc: %v", err)
	}
	return tool
}

// ran is what became of a cell.
type ran struct {
	*kerneltest.Recorder
	err  *kernel.Error
	stop error // the cause of an interrupt
}

// bound keeps a cell that hangs from hanging the tests; the first waits for a build.
const bound = 10 * time.Minute

func (s *session) run(code string) ran {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), bound)
	defer cancel()
	return s.runCell(ctx, code, nil)
}

func (s *session) runCell(ctx context.Context, code string, set func(*kernel.Cell, *kerneltest.Recorder)) ran {
	s.t.Helper()
	s.n++
	r := ran{Recorder: &kerneltest.Recorder{}}
	c := kernel.NewCell(code, r.Recorder)
	c.Count = s.n
	if set != nil {
		set(c, r.Recorder)
	}
	switch err := s.k.Execute(ctx, c); {
	case err == nil, errors.As(err, &r.err):
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		r.stop = err
	default:
		s.t.Fatalf("%s\n%v\nstderr: %s", code, err, r.Stream("stderr"))
	}
	return r
}

// text is the text of a result; "" for none.
func (r ran) text() string {
	for _, data := range r.Shown("execute_result") {
		return fmt.Sprint(data["text/plain"])
	}
	return ""
}

// is checks a cell that has to go well.
func (s *session) is(code, stdout, text string) {
	s.t.Helper()
	r := s.run(code)
	if r.err != nil || r.stop != nil {
		s.t.Errorf("%s\n%v %v", code, r.err, r.stop)
		if r.err != nil {
			s.t.Log(strings.Join(r.err.Traceback, "\n"))
		}
		return
	}
	if got := r.Stream("stdout"); got != stdout {
		s.t.Errorf("%s\nstdout %q, want %q", code, got, stdout)
	}
	if got := r.text(); got != text {
		s.t.Errorf("%s\nresult %q, want %q", code, got, text)
	}
	if got := r.Stream("stderr"); got != "" {
		s.t.Errorf("%s\nstderr %q", code, got)
	}
}

// fails checks a cell that has to end with an error.
func (s *session) fails(code, name string, has ...string) *kernel.Error {
	s.t.Helper()
	r := s.run(code)
	if r.err == nil {
		s.t.Errorf("%s\nno error, want %s", code, name)
		return &kernel.Error{}
	}
	all := r.err.Value + "\n" + strings.Join(r.err.Traceback, "\n")
	if r.err.Name != name {
		s.t.Errorf("%s\nerror %s, want %s: %s", code, r.err.Name, name, all)
	}
	for _, h := range has {
		if !strings.Contains(all, h) {
			s.t.Errorf("%s\n%q is not in %s", code, h, all)
		}
	}
	return r.err
}

// TestValuesLive is the proof of the way: a variable of one cell is there in the next.
func TestValuesLive(t *testing.T) {
	s := start(t)
	s.is("x := 41\ntype P struct{ A int; B string }\nfunc f(a int) int { return a + 1 }", "", "")
	s.is("x++\nf(x)", "", "43")
	s.is("import \"fmt\"\nfunc Map[T, U any](a []T, g func(T) U) []U { r := []U{}; for _, v := range a { r = append(r, g(v)) }; return r }\nfmt.Println(Map([]int{1,2}, func(i int) string { return fmt.Sprint(i, P{i, \"é\"}.B) }))", "[1é 2é]\n", "")
	s.is("p := &x\n*p = 7", "", "")
	s.is("x", "", "7")
	s.is("x := \"now a string\"\nx", "", "now a string")
	s.is("*p", "", "7")
	s.fails("var m map[string]int\nm[\"a\"] = 1", "panic", "nil map", "In[8]:2")
	s.fails("y := undefined1", "CompileError", "In[9]:1:6: undefined: undefined1")
	s.is("min(3, 2) + len(x)", "", "14")
}
