package golang_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
)

// place is a place in a cell.
var place = regexp.MustCompile(`In\[\d+\]:\d+`)

// TestDirectEnds has every way in which a cell can end otherwise than by its last
// statement, of cells that are evaluated: each ends as the compiler's does, and leaves
// what that leaves.
func TestDirectEnds(t *testing.T) {
	const first = `import ("errors"; "fmt"; "os"; "runtime"; "sync"; "time"; "strings")
type loud struct{ n int }
func (l loud) String() string { panic(fmt.Sprint("loud ", l.n)) }
type slow struct{}
func (slow) String() string { for { } }
type stubborn struct{}
func (stubborn) Error() string { for { func() { defer func() { recover() }(); select {} }() } }
func exit(code int) int { defer func() { n = 99 }(); os.Exit(code); return code }
func goexit() int { defer func() { n++ }(); runtime.Goexit(); return 1 }
func deep(i int) int { return deep(i+1) + 1 }
func spin() int { mu.Lock(); defer mu.Unlock(); for { n = 5 } }
func wait() int { <-never; return 1 }
func swallow() int { for { func() { defer func() { recover() }(); for {} }() } }
func recovers() any { return recover() }
func panics(v any) int { panic(v) }
func again() int { defer func() { panic(fmt.Sprint("again ", recover())) }(); panic("first") }
func nilpanic() int { var p *loud; return p.n }
func behind() int { done := make(chan bool); go func() { panics("behind") ; done <- true }(); <-done; return 1 }
func long() (string, int) { time.Sleep(300 * time.Millisecond); return "long", n }
func later() { go func() { time.Sleep(50 * time.Millisecond); panics("later") }() }
func writer() { go func() { for i := 0; i < 300; i++ { n = i; list = append(list, i); time.Sleep(time.Millisecond) } }() }
func large(i int) string { return strings.Repeat("x", i) }
func goexitBehind() int { done := make(chan bool); go func() { defer close(done); runtime.Goexit() }(); <-done; return 7 }
n, zero := 0, 0
var mu, held sync.Mutex
held.Lock()
var wg sync.WaitGroup
wg.Add(1)
var once sync.Once
never := make(chan int)
full := make(chan int)
var list []int
ld := loud{3}
var sl slow
var err error
bad := errors.New("bad")
free := func() bool { ok := mu.TryLock(); if ok { mu.Unlock() }; return ok }
`
	r := rewriter(t, first)
	s, w := start(t), start(t)
	s.is(first, "", "")
	w.is(first, "", "")
	deadline := errors.New("the deadline")
	for _, list := range []struct {
		within time.Duration // of those that don't end by themselves
		codes  []string
	}{
		{bound, []string{
			"exit(3)", "exit(0)", "1 + exit(4)", "n = exit(5)", "goexit()", "fmt.Println(goexit())", "deep(1)", "recovers()", "panics(bad)", "panics(nil)", "panics(n)", "panics(ld)", "again()", "nilpanic()", "n = panics(\"set\")", "behind()", "goexitBehind()",
			"fmt.Println(ld)", "fmt.Sprint(ld, 1)", "ld", "display(ld)", "ld.String()", "held.TryLock()", "len(large(3000000))", "large(1 << 20)", "fmt.Println(len(large(1 << 24)))", "once.Do(later)", "long()",
		}},
		{2 * time.Second, []string{"spin()", "fmt.Println(spin())", "held.Lock()", "wg.Wait()", "n = <-never", "fmt.Println(n, <-never)", "sl", "fmt.Sprint(sl)", "swallow()", "n += wait()"}},
	} {
		for _, code := range list.codes {
			if p, err := r.Direct("In[1]", code); err != nil || p == nil {
				t.Errorf("%s is left to the compiler: %v", code, err)
			}
			end := func(s *session, code string) string {
				ctx, cancel := context.WithTimeoutCause(t.Context(), list.within, deadline)
				defer cancel()
				r := s.runCell(ctx, code, nil)
				end := r.text() + "|" + r.Stream("stdout") + "|" + r.Stream("stderr")
				if r.err != nil {
					end += "|" + r.err.Name + "|" + r.err.Value + "|" + strings.Join(r.err.Traceback, "|")
				}
				if r.stop != nil {
					end += "|" + r.stop.Error()
				}
				end, _, _ = strings.Cut(place.ReplaceAllString(end, "In"), "In  deep")
				return end
			}
			// A declaration leaves it to the compiler.
			want := make(chan string)
			go func() { want <- end(w, "type forced int\n"+code) }()
			if got, want := end(s, code), <-want; got != want {
				t.Errorf("%s\n  direct   %.600q\n  compiled %.600q", code, got, want)
			}
			s.is("n", "", w.run("n").text())
			s.is("free()", "", "true")
			w.is("free()", "", "true")
		}
	}
}

// TestDirectShadowed has names of the language's and of packages that mean something else
// in cells that are evaluated.
func TestDirectShadowed(t *testing.T) {
	s := start(t)
	s.is("import (\"fmt\"; \"strings\")\ntype printer struct{ n int }\nfunc (p *printer) Println(a ...any) int { p.n += len(a); return p.n }\nfunc (p printer) Sprint(a int) int { return a * 2 }\nx := 3", "", "")
	for _, code := range []string{
		"len := func(s string) int { return 99 }", "true, nil, iota, cap := false, 5, 6, 4", "display := func(n int) int { return n * 10 }", "float64 := func(a ...any) any { return a[0] }",
		"string := func(n int) int { return n + 1 }", "fmt := &printer{}\nint := map[any]any{1: 2}\nstrings := []any{1, \"b\"}\nrun, init2, QRun := 1, 2, 3",
	} {
		s.is(code, "", "")
	}
	for _, c := range []struct{ code, text string }{
		{"len(\"a\")", "99"}, {"cap", "4"}, {"cap + nil", "9"}, {"true", "false"}, {"true == false", "true"}, {"!true", "true"}, {"nil == 5", "true"}, {"iota + nil", "11"}, {"string(3)", "4"}, {"display(3)", "30"},
		{"fmt.Println(1, 2)", "2"}, {"fmt.Println()", "2"}, {"fmt.Sprint(4)", "8"}, {"fmt.n", "2"}, {"int[1]", "2"}, {"strings[1]", "b"}, {"run + init2 + QRun", "6"}, {"float64(2.5, 1)", "2.5"}, {"cap = 7; cap", "7"}, {"nil++\nnil", "6"}, {"fmt = &printer{}\nfmt.n", "0"}, {"x", "3"},
	} {
		s.is(c.code, "", c.text)
	}
	s.is("type float64 float32\nfunc half(f float64) float64 { return f / 2 }\nh := half(3)\nh", "", "1.5")
	s.is("h + 1.0000001", "", "2.5")
	s.is("float64(x) + h", "", "4.5")
}
