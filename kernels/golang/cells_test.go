package golang_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

// TestCells runs cells of one session each, of what Go has.
func TestCells(t *testing.T) {
	type step struct{ code, stdout, text string }
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"declarations and statements mixed", []step{
			{"import \"fmt\"\nx := twice(20)\nfunc twice(n int) int { return 2*n + offset }\nconst offset = 1\nfmt.Println(x)", "41\n", ""},
			{"const big = 1 << 40\nvar a, b = 1, \"two\"\nvar (\n\tc float64 = 3\n\td = []int{1, 2}\n)\nfmt.Println(a, b, c, d, big)", "1 two 3 [1 2] 1099511627776\n", ""},
			{"a, b = 5, \"x\"; b", "", "x"},
			{"var e error\ne", "", "<nil>"},
		}},
		{"lower-case fields and methods of earlier cells", []step{
			{"type point struct{ x, y int }\nfunc (p point) sum() int { return p.x + p.y }\nfunc (p *point) move(d int) { p.x += d }", "", ""},
			{"p := point{x: 1, y: 2}\np.move(10)\np.sum()", "", "13"},
			{"p", "", "{x:11 y:2}"},
			{"q := &p\nq.x++\nps := []point{p, *q}\nlen(ps)", "", "2"},
			{"import \"fmt\"\nfmt.Printf(\"%+v %T\\n\", p, q)", "{x:12 y:2} *main.point\n", ""},
			{"s := fmt.Sprintf(\"%+v\", p)\nlen(s)", "", "10"},
		}},
		{"generics", []step{
			{"type num interface{ ~int | ~float64 }\nfunc sum[T num](xs ...T) (s T) { for _, x := range xs { s += x }; return }", "", ""},
			{"sum(1, 2, 3)", "", "6"},
			{"sum(1.5, 2)", "", "3.5"},
			{"type stack[T any] struct{ items []T }\nfunc (s *stack[T]) push(v T) { s.items = append(s.items, v) }\nfunc (s *stack[T]) pop() (v T, ok bool) { if len(s.items) == 0 { return }; v = s.items[len(s.items)-1]; s.items = s.items[:len(s.items)-1]; return v, true }", "", ""},
			{"st := &stack[string]{}\nst.push(\"a\"); st.push(\"b\")\nst.pop()", "", "b\ntrue"},
			{"type pair[K comparable, V any] struct { key K; val V }\nm := map[string]pair[string, int]{\"x\": {\"k\", 1}}\nm[\"x\"].val", "", "1"},
			{"f := sum[int]\nf(4, 5)", "", "9"},
		}},
		{"closures over variables", []step{
			{"n := 0\ninc := func() int { n++; return n }", "", ""},
			{"inc(); inc()", "", "2"},
			{"n = 10\ninc()", "", "11"},
			{"n := \"other\"\ninc()", "", "12"},
		}},
		{"labels, goto, switch, select, defer, recover", []step{
			{"import \"fmt\"\nouter:\nfor i := 0; i < 3; i++ {\n\tfor j := 0; j < 3; j++ {\n\t\tif j == 1 { continue outer }\n\t\tif i == 2 { break outer }\n\t\tfmt.Print(i, j, \";\")\n\t}\n}", "0 0;1 0;", ""},
			{"i := 0\nagain:\ni++\nif i < 5 { goto again }\ni", "", "5"},
			{"func safe(f func()) (err error) { defer func() { if r := recover(); r != nil { err = fmt.Errorf(\"caught: %v\", r) } }(); f(); return }\nsafe(func() { panic(\"boom\") })", "", "caught: boom"},
			{"safe(func() {})", "", ""},
			{"defer fmt.Println(\"last\")\nfmt.Println(\"first\")", "first\nlast\n", ""},
			{"ch := make(chan int, 1)\nselect { case v := <-ch: fmt.Println(v); default: fmt.Println(\"empty\") }", "empty\n", ""},
			{"switch v := any(i).(type) { case int: fmt.Println(\"int\", v); default: fmt.Println(\"?\") }", "int 5\n", ""},
		}},
		{"goroutines live on", []step{
			{"import (\"sync\"; \"fmt\")\nrequests := make(chan int)\nanswers := make(chan int)\ngo func() { for r := range requests { answers <- r * r } }()", "", ""},
			{"requests <- 7\n<-answers", "", "49"},
			{"var wg sync.WaitGroup\nvar mu sync.Mutex\nsum := 0\nadd := func(n int) { defer wg.Done(); mu.Lock(); sum += n; mu.Unlock() }\nfor i := range 10 { wg.Add(1); go add(i) }\nwg.Wait()\nfmt.Println(sum)", "45\n", ""},
			{"func worker(id int, out chan<- string, words ...string) { for _, w := range words { out <- fmt.Sprint(id, w) } }\nout := make(chan string)\ngo worker(1, out, \"a\", \"b\")\n<-out + <-out", "", "1a1b"},
		}},
		{"unused things are no error", []step{
			{"import \"os\"\nimport \"strings\"\nfunc f() int { unused := 1; var other int; for i, v := range []int{1} { }; if z := 2; true { }; switch y := 1; { case true: }; return 2 }\nf()", "", "2"},
			{"func g(x any) string { switch v := x.(type) { case int: return \"i\" }; return \"?\" }\nif q := 1; true { }\ng(1)", "", "i"},
		}},
		{"redefinition, old values stay", []step{
			{"type T struct{ A int }\nfunc (t T) Hi() string { return \"old\" }\nv := T{1}\nfunc name() string { return \"one\" }", "", ""},
			{"type T struct{ B string }\nw := T{\"b\"}\nfunc name() string { return \"two\" }\nw.B + name()", "", "btwo"},
			{"v.A", "", "1"},
			{"v.Hi()", "", "old"},
			{"x := 2", "", ""},
			{"x := x * 3\nx", "", "6"},
			{"x, y := x+1, x\nx*100 + y", "", "706"},
		}},
		{"a whole file", []step{
			{"package main\n\nimport \"fmt\"\n\nvar a = b + 1\nvar b = f()\n\nfunc f() int { return 10 }\n\nfunc init() { fmt.Println(\"init\", a) }\n\nfunc main() { fmt.Println(\"main\", b) }\n", "init 11\nmain 10\n", ""},
			{"a + b", "", "21"},
			{"func main() { fmt.Println(\"again\", a) }", "again 11\n", ""},
		}},
		{"embedding, interfaces, method values", []step{
			{"type base struct{ id int }\nfunc (b *base) ID() int { return b.id }\ntype named interface{ name() string }\ntype item struct { base; label string }\nfunc (i item) name() string { return i.label }", "", ""},
			{"it := item{base{3}, \"pen\"}\nvar nm named = it\nnm.name()", "", "pen"},
			{"id := it.ID\nid() + it.id + it.base.id", "", "9"},
			{"type wrap struct { int; error }\nw := wrap{int: 4}\nw.int", "", "4"},
			{"g := item.name\ng(it)", "", "pen"},
			{"anon := struct{ a, b int }{1, 2}\nanon.a + anon.b", "", "3"},
			{"anon = struct{ a, b int }{5, 6}\nanon", "", "{a:5 b:6}"},
		}},
		{"iota and typed constants", []step{
			{"type level int\nconst (\n\tlow level = iota\n\tmid\n\thigh\n)\nfunc (l level) String() string { return [...]string{\"low\", \"mid\", \"high\"}[l] }", "", ""},
			{"high", "", "high"},
			{"const (\n\t_ = 1 << (10 * iota)\n\tKB\n\tMB\n)\nMB", "", "1048576"},
			{"mid + 1 == high", "", "true"},
		}},
		{"shadowing", []step{
			{"import \"fmt\"\nx := 1\n{\n\tx := 2\n\tx++\n\tfmt.Println(x)\n}\nif x := x + 10; x > 5 { fmt.Println(x) }\nx", "3\n11\n", "1"},
			{"len := func(s string) int { return 99 }\nlen(\"a\")", "", "99"},
			{"y := 5\nf := func(y int) int { return y * 2 }\nf(y) + y", "", "15"},
		}},
		{"pointers, errors, maps, nested values are readable", []step{
			{"type node struct { Val int; Next *node }\nl := &node{1, &node{2, nil}}\nl", "", "&{Val:1 Next:&{Val:2 Next:<nil>}}"},
			{"l.Next.Next = l\nl", "", "&{Val:1 Next:&{Val:2 Next:&…}}"},
			{"import \"errors\"\nerrors.New(\"bad\")", "", "bad"},
			{"map[string][]int{\"b\": {2}, \"a\": {1}}", "", "map[a:[1] b:[2]]"},
			{"[]byte(\"hi\")", "", "[104 105]"},
			{"nil", "", "<nil>"},
			{"import \"time\"\n90 * time.Second", "", "1m30s"},
			{"func(a int) string { return \"\" }", "", "func(int) string"},
			{"1 + 2i", "", "(1+2i)"},
			{"'a'", "", "97"},
			{"x := 5; x;", "", ""},
		}},
		{"imports", []step{
			{"import str \"strings\"", "", ""},
			{"str.ToUpper(\"abc\")", "", "ABC"},
			{"import . \"math\"\nSqrt(16)", "", "4"},
			{"Floor(2.5)", "", "2"},
			{"import \"math/rand/v2\"\nrand.IntN(1)", "", "0"},
			{"strings := []string{\"x\"}\nstrings", "", "[x]"},
		}},
		{"types of the standard library that have no name", []step{
			{"import \"encoding/binary\"\nbo := binary.LittleEndian\nbo.Uint16([]byte{1, 2})", "", "513"},
			{"bo.Uint16([]byte{2, 1})", "", "258"},
		}},
		{"a name before and after its new declaration", []step{
			{"x := 1", "", ""},
			{"y := x\nx := \"s\"\nz := x\ny + len(z)", "", "2"},
			{"import \"fmt\"\nfmt.Println(x)", "s\n", ""},
		}},
		{"packages of the standard library need no import", []step{
			{"fmt.Println(strings.ToUpper(\"a\"))", "A\n", ""},
			{"func f() string { return filepath.Base(\"a/b\") }\nf()", "", "b"},
			{"math := struct{ Pi int }{3}\nmath.Pi", "", "3"},
			{"math.Pi", "", "3"},
		}},
		{"JSON does not see lower-case fields", []step{
			{"import \"encoding/json\"\ntype rec struct { Name string; secret int }\nb, err := json.Marshal(rec{\"n\", 5})\nstring(b)", "", "{\"Name\":\"n\"}"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t)
			for _, st := range c.steps {
				s.is(st.code, st.stdout, st.text)
			}
		})
	}
}

// TestIterators ranges over numbers, and over functions where the toolchain's language
// has that, from Go 1.23 on.
func TestIterators(t *testing.T) {
	s := start(t)
	s.is("total := 0\nfor i := range 3 { total += i }\ntotal", "", "3")
	s.is("func count(n int) func(func(int) bool) { return func(yield func(int) bool) { for i := 0; i < n; i++ { if !yield(i) { return } } } }", "", "")
	over := "seen := 0\nfor i := range count(5) { if i == 4 { break }; seen += i }\nseen"
	if version.Compare(toolchain(t).Language, "go1.23") < 0 {
		s.fails(over, "CompileError", "In[3]:2:16: cannot range over count(5)")
		s.fails("seen", "CompileError", "undefined: seen")
		return
	}
	s.is(over, "", "6")
}

// TestErrors has what goes wrong, and that nothing of it is left.
func TestErrors(t *testing.T) {
	s := start(t)
	s.fails("a := 1\nb := nope\nc := 2", "CompileError", "In[1]:2:6: undefined: nope", "    b := nope\n         ^")
	s.fails("a", "CompileError", "undefined: a")
	s.fails("x := 1\nx := 2", "CompileError", "In[3]:2:3: no new variables on left side of :=")
	s.fails("if true {", "CompileError", "not closed")
	s.fails("}", "CompileError", "closes nothing")
	s.fails("x = = 1", "CompileError", "In[6]:1:5: syntax error")
	s.fails("import \"C\"", "CompileError", "cgo")
	s.fails("import \"github.com/no/such\"\nsuch.F()", "CompileError", "%get github.com/no/such")
	s.fails("import \"nosuch\"\nnosuch.F()", "CompileError", "standard library")
	s.fails("var s string = 5", "CompileError", "In[10]:1:16")
	s.is("type T struct{ A int }\nv := T{1}", "", "")
	s.is("type T struct{ A int }\nfunc take(t T) int { return t.A }", "", "")
	s.fails("take(v)", "CompileError", "earlier cell's declaration")
	s.is("used := T{2}", "", "")
	s.fails("func (t T) More() int { return 1 }", "CompileError", "declare the type again")
	s.fails("import \"fmt\"\nfunc inner(i int) int { return []int{1}[i] }\nfunc outer() int { return inner(5) }\nfmt.Println(\"before\")\nouter()", "panic",
		"index out of range [5] with length 1", "In[16]:2  inner", "In[16]:3  outer", "In[16]:5  the cell")
	s.fails("panic(fmt.Errorf(\"wrapped: %w\", fmt.Errorf(\"deep\")))", "panic", "wrapped: deep")
	s.fails("done := make(chan bool)\ngo func() { var p *int; *p = 1 }()\n<-done", "panic", "nil pointer", "In[18]:2")
	s.fails("go func(n int) { panic(n) }(3); select {}", "panic", "3")
	s.fails("y := 1\nz := []int{}[y]\nw := 2", "panic", "index out of range")
	s.is("y", "", "1")
	s.fails("z", "CompileError", "undefined: z")
	s.fails("Ꟶx := 1", "CompileError", "reserved")
	s.is("v.A", "", "1")
}

// interrupted runs a cell and interrupts it.
func (s *session) interrupted(code string, after time.Duration) ran {
	s.t.Helper()
	ctx, cancel := context.WithCancelCause(s.t.Context())
	defer cancel(nil)
	t := time.AfterFunc(after, func() { cancel(kernel.ErrInterrupted) })
	defer t.Stop()
	return s.runCell(ctx, code, nil)
}

func TestInterrupts(t *testing.T) {
	s := start(t)
	s.is("import (\"fmt\"; \"time\"; \"sync\"; \"math/big\"; \"os\"; \"os/exec\"; \"sort\")\nkept := 1\nvar mu sync.Mutex", "", "")
	for _, code := range []string{
		"for {}",
		"func rec(n int) int { if n > 1000 { n = 0 }; return rec2(n) }\nfunc rec2(n int) int { time.Sleep(time.Microsecond); return rec(n+1) }\nrec(0)",
		"ch := make(chan int)\n<-ch",
		"time.Sleep(time.Hour)",
		"mu.Lock()\nmu.Lock()",
		"select {}",
		"var wg sync.WaitGroup\nwg.Add(1)\ngo func() { for {} }()\nwg.Wait()",
		"for { func() { defer func() { recover() }(); for {} }() }",
		"L: goto L",
		"sort.Slice(make([]int, 1000), func(i, j int) bool { for {} })",
		"b := new(big.Int).Exp(big.NewInt(7), big.NewInt(30_000_000), nil)\nfmt.Println(b.BitLen())",
		"exec.Command(\"sleep\", \"1000\").Run()",
		"for { fmt.Print(\".\"); time.Sleep(time.Millisecond) }",
		"for { select { case <-time.After(time.Millisecond): kept = 1 } }",
		"var d func(); d = func() { defer d(); for {} }; d()",
	} {
		begin := time.Now()
		r := s.interrupted(code, 1500*time.Millisecond)
		if !errors.Is(r.stop, kernel.ErrInterrupted) {
			t.Errorf("%s\nended by itself: %v", code, r.err)
		}
		t.Logf("%.40q: %v after the interrupt", code, (time.Since(begin) - 1500*time.Millisecond).Round(time.Millisecond))
		s.is("kept", "", "1")
	}
	s.is("fmt.Println(os.Getpid() > 0)", "true\n", "")
}

// TestStopped has that nothing of a stopped cell is done or printed later.
func TestStopped(t *testing.T) {
	s := start(t)
	s.is("import (\"fmt\"; \"time\")\nn := 0", "", "")
	r := s.interrupted("defer fmt.Println(\"deferred\")\nfor {\n\ttime.Sleep(2*time.Second)\n\tn++\n\tfmt.Println(\"late\", n)\n}", 300*time.Millisecond)
	if r.stop == nil {
		t.Error("not stopped")
	}
	s.is("time.Sleep(3*time.Second)\nn", "", "0")
	r = s.interrupted("go func() { for { time.Sleep(300*time.Millisecond); n++; fmt.Println(\"more\") } }()\ntime.Sleep(time.Hour)", 500*time.Millisecond)
	if r.stop == nil {
		t.Error("not stopped")
	}
	s.is("n = 0\ntime.Sleep(time.Second)\nn", "", "0")
}

// TestLate has that a goroutine of a cell that is over prints in that cell's name.
func TestLate(t *testing.T) {
	s := start(t)
	first := s.run("import (\"fmt\"; \"time\"; \"os\"; \"log\")\ngo func() { time.Sleep(500*time.Millisecond); fmt.Println(\"from one\"); fmt.Fprintln(os.Stderr, \"err\"); log.SetFlags(0); log.Print(\"logged\") }()\ntime.AfterFunc(600*time.Millisecond, func() { fmt.Println(\"timer\") })")
	if first.err != nil {
		t.Fatal(first.err)
	}
	s.is("time.Sleep(1500*time.Millisecond)\nfmt.Println(\"two\")", "two\n", "")
	if got := first.Stream("stdout"); got != "from one\ntimer\n" {
		t.Errorf("stdout of the first: %q", got)
	}
	if got := first.Stream("stderr"); got != "err\nlogged\n" {
		t.Errorf("stderr of the first: %q", got)
	}
	late := s.run("go func() { time.Sleep(300*time.Millisecond); panic(\"alone\") }()")
	s.is("time.Sleep(time.Second)", "", "")
	if got := late.Stream("stderr"); !strings.Contains(got, "alone") {
		t.Errorf("stderr of a late panic: %q", got)
	}
}

func TestExit(t *testing.T) {
	s := start(t)
	s.is("import (\"os\"; \"log\"; \"fmt\")\nx := 1", "", "")
	s.fails("x = 2\nfunc leave(n int) { defer fmt.Println(\"no\"); defer func() { recover() }(); os.Exit(n) }\nleave(3)\nx = 3", "ExitStatus", "3")
	s.is("x", "", "2")
	s.is("os.Exit(0)\nx = 9", "", "")
	s.is("x", "", "2")
	s.fails("log.Fatal(\"bad\")", "ExitStatus", "1")
	s.fails("go func() { os.Exit(4) }()\nselect {}", "ExitStatus", "4")
	s.fails("func deep(n int) int { return deep(n+1) + 1 }\ndeep(0)", "panic", "stack overflow")
	s.is("x", "", "2")
}

func TestEnvironment(t *testing.T) {
	s := start(t)
	dir := t.TempDir()
	s.is("import (\"os\"; \"fmt\")\nhome, _ := os.Getwd()", "", "")
	with := func(code string) ran {
		return s.runCell(t.Context(), code, func(c *kernel.Cell, _ *kerneltest.Recorder) {
			c.Env = map[string]string{"CELL_ONLY": "yes"}
			c.Cwd = dir
		})
	}
	r := with("d, _ := os.Getwd()\nfmt.Println(os.Getenv(\"CELL_ONLY\"), d)")
	if got, want := r.Stream("stdout"), "yes "+dir+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.is("now, _ := os.Getwd()\nfmt.Println(os.Getenv(\"CELL_ONLY\") == \"\", now == home)", "true true\n", "")
	with("os.Setenv(\"CELL_ONLY\", \"changed\"); os.Chdir(\"/\")")
	s.is("now, _ := os.Getwd()\nfmt.Println(os.Getenv(\"CELL_ONLY\"), now)", "changed /\n", "")
	r = s.runCell(t.Context(), "1", func(c *kernel.Cell, _ *kerneltest.Recorder) { c.Cwd = "/no/such" })
	if r.err == nil || !strings.Contains(r.err.Value, "/no/such") {
		t.Errorf("a directory that isn't there: %v", r.err)
	}
}

func TestInput(t *testing.T) {
	s := start(t)
	s.is("import (\"os\"; \"fmt\"; \"bufio\"; \"time\")", "", "")
	ask := func(code string, answers ...string) ran {
		return s.runCell(t.Context(), code, func(c *kernel.Cell, r *kerneltest.Recorder) {
			c.AllowStdin = true
			r.Answers = answers
		})
	}
	r := ask("sc := bufio.NewScanner(os.Stdin)\nsc.Scan()\nfmt.Println(\"got\", sc.Text())", "hello")
	if got := r.Stream("stdout"); got != "got hello\n" {
		t.Errorf("Scanner: %q %v", got, r.err)
	}
	r = ask("var a, b int\nfmt.Scan(&a, &b)\nfmt.Println(a + b)", "3 4")
	if got := r.Stream("stdout"); got != "7\n" {
		t.Errorf("Scan: %q %v", got, r.err)
	}
	r = ask("var w string\nn, err := fmt.Scanln(&w)\nfmt.Println(n, err, w)", "word")
	if got := r.Stream("stdout"); got != "1 <nil> word\n" {
		t.Errorf("Scanln: %q %v", got, r.err)
	}
	// An interrupt takes a question back, and the next gets its own answer.
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	s.runCell(ctx, "time.Sleep(2*time.Second)", nil)
	r = ask("var again string\nfmt.Scanln(&again)\nfmt.Println(again)", "mine")
	if got := r.Stream("stdout"); got != "mine\n" {
		t.Errorf("after an interrupt: %q %v", got, r.err)
	}
	refused := s.run("var q string\n_, err := fmt.Scan(&q)\nfmt.Println(err)")
	if got := refused.Stream("stdout"); !strings.Contains(got, "without answers") {
		t.Errorf("refused: %q", got)
	}
}

func TestShown(t *testing.T) {
	s := start(t)
	s.is("import (\"image\"; \"image/color\"; \"os\"; \"time\")\ntype row struct { Month string; revenue int; At time.Time; P *float64 }", "", "")
	r := s.run("[]row{{\"Jan\", 120, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), nil}, {\"Feb\", 1 << 60, time.Time{}, nil}}")
	if r.err != nil {
		t.Fatal(r.err)
	}
	table, _ := r.Shown("execute_result")[0]["application/vnd.runtime.table+json"].(map[string]any)
	if got := fmt.Sprint(table["columns"], table["types"], table["rows"], table["rowCount"], table["truncated"]); got !=
		"[Month revenue At P] [string integer datetime number] [[Jan 120 2026-01-02T03:04:05Z <nil>] [Feb 1152921504606846976 <nil> <nil>]] 2 false" {
		t.Errorf("table: %s", got)
	}
	r = s.run("img := image.NewRGBA(image.Rect(0, 0, 4, 4))\nimg.Set(1, 1, color.White)\nimg")
	if r.err != nil {
		t.Fatal(r.err)
	}
	if data := r.Shown("execute_result")[0]; !strings.HasPrefix(fmt.Sprint(data["image/png"]), "iVBOR") {
		t.Errorf("image: %v", data)
	}
	r = s.run("display(map[string]any{\"text/html\": \"<b>x</b>\", \"text/plain\": \"x\"}, 5)")
	if got := fmt.Sprint(r.Shown("display_data")); got != "[map[text/html:<b>x</b> text/plain:x] map[text/plain:5]]" {
		t.Errorf("display: %v %v", got, r.err)
	}
	file := t.TempDir() + "/a.json"
	r = s.run(fmt.Sprintf("os.WriteFile(%q, []byte(`{\"a\":1}`), 0o600)\ndisplay(%q)", file, file))
	if got := fmt.Sprint(r.Shown("display_data")); got != "[map[application/json:map[a:1] text/plain:"+file+"]]" {
		t.Errorf("file: %v %v", got, r.err)
	}
	s.is("display := func(x int) int { return x }\ndisplay(3)", "", "3")
}

// TestOneSession runs the cells of testdata/session.json, one after another: what the
// language has, over names of earlier cells.
func TestOneSession(t *testing.T) {
	b, err := os.ReadFile("testdata/session.json")
	if err != nil {
		t.Fatal(err)
	}
	var cells [][2]string // code, result
	if err := json.Unmarshal(b, &cells); err != nil {
		t.Fatal(err)
	}
	s := start(t)
	for _, c := range cells {
		s.is(c[0], "", c[1])
	}
}
