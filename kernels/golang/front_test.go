package golang_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

// killFront kills the compiler's front of a kernel, and waits until it has gone.
func killFront(t *testing.T) {
	t.Helper()
	front := children(os.Getpid(), "front")
	if len(front) != 1 {
		t.Errorf("fronts: %v", front)
		return
	}
	if err := syscall.Kill(front[0], syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if now := children(os.Getpid(), "front"); len(now) == 0 || now[0] != front[0] {
			return
		}
		if time.Now().After(end) {
			t.Error("the front that was killed is still there")
			return
		}
	}
}

// halt stops a process before it can end, and reports whether it has.
func halt(pid int) bool {
	if syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return false
	}
	for {
		switch p, ok := procfs.Read(pid); {
		case !ok || p.State == 'Z' || p.State == 'X':
			return false
		case p.State == 'T':
			return true
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// TestFrontKilled has that the end of the compiler's front costs no value and no
// declaration, at whatever moment it comes.
func TestFrontKilled(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	proxyWith(t, "example.com/vowels", map[string]string{
		"vowels.go": "package vowels\nimport \"strings\"\ntype Set string\nfunc (s Set) Count(t string) (n int) { for _, r := range t { if strings.ContainsRune(string(s), r) { n++ } }; return n }\n"})
	s := start(t)
	s.run("%get example.com/vowels@v1.0.0")
	s.is("import \"example.com/vowels\"\nset := vowels.Set(\"aeiou\")", "", "")
	s.is("import (\"fmt\"; str \"strings\")\ntype P struct{ a, b int }\nfunc (p *P) move(d int) *P { p.a += d; return p }\nfunc Map[T, U any](a []T, g func(T) U) (r []U) { for _, v := range a { r = append(r, g(v)) }; return }\nconst (\n\tlow = iota\n\thigh\n)\nx, p := 41, &P{1, 2}\nn := 0\nstop := make(chan bool)\ngo func() { for { select { case <-stop: return; default: n++ } } }()", "", "")
	s.is("x++\nx", "", "42")
	s.is("old := p\ntype P struct{ c string }\nq := P{str.ToUpper(\"q\")}", "", "")
	s.is("import . \"math\"\ntype Late struct{ v int }", "", "")
	s.fails("y := 1\npanic(\"no\")\nz := 2", "panic", "no")
	s.is("func (l Late) Get() int { return l.v }", "", "")
	all := func() {
		t.Helper()
		s.is("x", "", "42")
		s.is("old.move(1).move(-1).a + x + y + high", "", "45")
		s.is("fmt.Println(q, str.ToLower(q.c), Map([]int{1, low}, func(i int) string { return fmt.Sprint(i) }), Sqrt(4))", "{Q} q [1 0] 2\n", "")
		s.fails("z", "CompileError", "undefined: z")
		s.is("set.Count(\"banana\") + vowels.Set(\"b\").Count(\"banana\")", "", "4")
	}
	all()

	// While nothing runs.
	killFront(t)
	all()
	s.is("before := n\nfor n == before { fmt.Print() }", "", "")
	// A method that comes later than its type, until that is in use.
	s.is("func (l Late) Twice() int { return l.Get() * 2 }\nlate := Late{4}\nlate.Twice()", "", "8")
	killFront(t)
	s.fails("func (l Late) Thrice() int { return l.v * 3 }", "CompileError", "in use")

	// Over a question.
	killFront(t)
	if c, err := s.k.Complete(t.Context(), "lat", 3); err != nil || len(c.Matches) == 0 || c.Matches[0] != "late" {
		t.Errorf("completion: %v %v", c, err)
	}

	// While a cell runs: it ends as it would, and what it declares is there.
	s.during("import \"time\"\nrunning := 5\nfmt.Println(\"on\")\nfor waiting := time.Now(); time.Since(waiting) < 300*time.Millisecond; { time.Sleep(time.Millisecond) }\nx = 43\nafter := func() int { return running + x }\nafter()", "on", func() { killFront(t) }, func(r ran) {
		if r.err != nil || r.text() != "48" {
			t.Errorf("a cell during which the front was killed: %q %v", r.text(), r.err)
		}
	})
	s.is("after() + running", "", "53")
	killFront(t)
	list, total, err := s.k.Variables(t.Context())
	if names := fmt.Sprint(list); err != nil || total != len(list) || !strings.Contains(names, "running") || !strings.Contains(names, "late") {
		t.Errorf("variables: %s %v", names, err)
	}
	s.is("x = 42", "", "")

	// While it compiles and while it links: the cell is in error, and nothing of it is there.
	for _, tool := range []string{"compile", "link"} {
		front := children(os.Getpid(), "front")
		done, seen := make(chan struct{}), make(chan bool)
		go func() {
			for end := time.Now().Add(time.Minute); time.Now().Before(end); {
				select {
				case <-done:
					seen <- false
					return
				default:
				}
				for _, pid := range children(front[0], tool) {
					if !halt(pid) {
						continue
					}
					_ = syscall.Kill(front[0], syscall.SIGKILL)
					_ = syscall.Kill(pid, syscall.SIGCONT)
					seen <- true
					return
				}
			}
		}()
		long := "func long(i int) int {\n" + strings.Repeat("if i > 3 { i -= len(fmt.Sprint(i)) }\n", 1500) + "return i\n}\n"
		r := s.run("x = 1\nnever := 3\ntype P struct{ no int }\n" + long + "fmt.Println(never)")
		close(done)
		if !<-seen {
			t.Fatalf("no %s was seen", tool)
		}
		if r.err == nil || r.err.Name != "ToolchainError" || !strings.Contains(r.err.Value, "run the cell again") || r.Stream("stdout") != "" {
			t.Errorf("a front that was killed over the %s: %+v", tool, r.err)
		}
		s.fails("never", "CompileError", "undefined: never")
		all()
		s.is("x = x + 1\nmade := x; x--\nmade", "", "43")
	}
	s.is("close(stop)", "", "")
	if left, _ := filepath.Glob(filepath.Join(dir, "cellard-go-*", "go-link-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestFrontCantTakeOver has that the kernel ends where no front can take over.
func TestFrontCantTakeOver(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := start(t)
	s.is("x := 1", "", "")
	files, _ := filepath.Glob(filepath.Join(dir, "cellard-go-*", "cells"))
	if len(files) != 1 {
		t.Fatalf("files of cells: %v", files)
	}
	if err := os.WriteFile(files[0], []byte("{\"Name\":\"In[1]\",\"Code\":\"x := nosuch\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	killFront(t)
	err := s.k.Execute(t.Context(), kernel.NewCell("x", &kerneltest.Recorder{}))
	if err == nil || !strings.Contains(err.Error(), "the Go compiler's front") {
		t.Errorf("a front whose cells can't be read: %v", err)
	}
}

// during runs a cell, and does something once it has printed what it is to.
func (s *session) during(code, printed string, do func(), then func(ran)) {
	s.t.Helper()
	ctx, cancel := context.WithTimeoutCause(s.t.Context(), bound, fmt.Errorf("%s: too long", printed))
	defer cancel()
	got := make(chan ran, 1)
	recorded := make(chan *kerneltest.Recorder, 1)
	go func() { got <- s.runCell(ctx, code, func(_ *kernel.Cell, r *kerneltest.Recorder) { recorded <- r }) }()
	for r := <-recorded; !strings.Contains(r.Stream("stdout"), printed) && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
	do()
	then(<-got)
}
