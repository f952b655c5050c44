package golang_test

import (
	"errors"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"sync"
	"testing"

	"github.com/cellard/cellard/kernels/golang/compiler"
	"github.com/cellard/cellard/kernels/golang/wire"
)

// standard imports the few packages that these tests use, once: another reading of one
// would be another package.
//
// All are read at once, by children whose end a kernel that runs in this process would
// take for its own: first called where none runs.
var standard = sync.OnceValue(func() types.Importer {
	f := &few{gc: importer.Default(), packages: make(map[string]*types.Package)}
	for _, path := range []string{"fmt", "errors", "strings", "os", "time", "sync", "sort", "unsafe", "math", "runtime"} {
		p, err := f.gc.Import(path)
		if err != nil {
			panic(err)
		}
		f.packages[path] = p
	}
	return f
})

type few struct {
	gc       types.Importer
	packages map[string]*types.Package
}

func (f *few) Import(path string) (*types.Package, error) {
	if p := f.packages[path]; p != nil {
		return p, nil
	}
	return nil, errors.New("·there is no package " + path)
}

// rewriter is one that has these cells. It is made before there is a kernel: see standard.
func rewriter(t *testing.T, cells ...string) *compiler.Rewriter {
	t.Helper()
	r := compiler.NewRewriter(standard(), "go1.22")
	for _, code := range cells {
		_, number, err := r.Rewrite("In[1]", code)
		if err != nil {
			t.Fatal(err)
		}
		r.Commit(number, 1000)
	}
	return r
}

func TestRewrite(t *testing.T) {
	for _, c := range []struct {
		name  string
		cells []string
		has   []string // in what the last becomes
		not   []string
	}{
		{"a variable becomes the package's", []string{"x := 41"},
			[]string{"package m~ain\n", "var ~x int\n", "~x = 41"}, []string{":="}},
		{"an earlier cell's names are qualified", []string{"type p struct{ a int }\nv := p{1}", "v.a++\nw := v"},
			[]string{`"cell/c1"`, "var ~w ~QP0.~p\n", "~QP0.~v.~a++"}, nil},
		{"lines and columns stay", []string{"x := 1\n\nfunc f() {}; y := 2"},
			[]string{"/*line In[1]:1:1*/~x", "/*line In[1]:3:1*/func ~f()", "Check();\n\n             ~y"}, nil},
		{"what is on the line of another has its column", []string{"x := 1; y := 2\nz := 3"},
			[]string{"/*line In[1]:1:1*/~x", "/*line In[1]:1:9*/~y", "Check();\n~z"}, nil},
		{"fmt is not linked for its printing", []string{"import \"fmt\"\nfmt.Println(1)"}, []string{"~QR.Println(1)"}, []string{`"fmt"`}},
		{"lower-case fields are hidden", []string{"type p struct { a, b int; C int; d int `x:\"y\"` }"},
			[]string{"~a, ~b int `json:\"-\" xml:\"-\" yaml:\"-\"`", "C int;", "~d int `x:\"y\"`"}, nil},
		{"loops and goroutines are guarded", []string{"f := func(n int) {}\nfor { go f(1) }"},
			[]string{"for {~QR.Check();", "defer ~QR.Guard(~QR.Began());~QF(~QA0)}(~f,1)"}, nil},
		{"a function that calls nothing of the user's is left alone", []string{"func add(a, b int) int { return a + b }"},
			[]string{"int { return a + b }"}, nil},
		{"the last expression is shown", []string{"1 + 1"}, []string{"~QR.Show(1 + 1)"}, nil},
		{"a call's values are shown", []string{"func f() (int, error) { return 1, nil }\nf()"}, []string{"~QR.ShowAll(~f())"}, nil},
		{"a name before its new declaration is the old one", []string{"x := 1", "y := x\nx := \"s\"\n_ = x"},
			[]string{"~y = ~QP0.~x;", "~x = \"s\"", "_ = ~x"}, nil},
		{"a large size is looked at", []string{"n := 5\na := make([]int64, n+1)\nb := make([]byte, 10)\nc := make(chan [2]int, 3, )\nd := make([]string, 0, 1<<40)\ne := make(map[int]int, n)\nf := make([]struct{}, n)"},
			[]string{"make([]int64, ~QR.Room(~n+1,8))", "make([]byte, 10)", "make(chan [2]int, 3, )", "make([]string, 0, ~QR.Room(1<<40,16))", "make(map[int]int, ~n)", "make([]struct{}, ~n)"}, nil},
		{"a predeclared type is embedded by an alias", []string{"type w struct { int }"}, []string{"type ~int = int\n", "struct { ~int }"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := compiler.NewRewriter(standard(), "go1.24")
			var text string
			for _, code := range c.cells {
				out, number, err := r.Rewrite("In[1]", code)
				if err != nil {
					t.Fatalf("%s\n%v", code, err)
				}
				r.Commit(number, 1000)
				text = out
			}
			// These letters are of another look than the mark, to be read here.
			text = strings.NewReplacer(wire.Mark+"Q", "~Q", "m"+wire.Mark, "m~", wire.Mark, "~").Replace(text)
			for _, h := range c.has {
				if !strings.Contains(text, h) {
					t.Errorf("%q is not in\n%s", h, text)
				}
			}
			for _, n := range c.not {
				if strings.Contains(text, n) {
					t.Errorf("%q is in\n%s", n, text)
				}
			}
		})
	}
}

func TestUnmark(t *testing.T) {
	for in, want := range map[string]string{
		"m\uA7F5ain.\uA7F5point":  "main.point",
		"plain":                   "plain",
		"\uA7F5":                  "\uA7F5",
		"a \uA7F5 b":              "a \uA7F5 b",
		"\uA7F5\uA7F6":            "\uA7F6",
		"\uA7F5_x":                "_x",
		"{\uA7F5x:1 \uA7F5été:2}": "{x:1 été:2}",
	} {
		if got := wire.Unmark(in); got != want {
			t.Errorf("Unmark(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzRewrite has that no two cells crash what makes packages of them, and that what it
// makes is Go.
func FuzzRewrite(f *testing.F) {
	for _, s := range [][2]string{
		{"x := 41", "x++\nx"},
		{"import \"fmt\"\ntype T[P any] struct { a P; *T[P] }\nfunc (t T[P]) m() P { return t.a }", "v := T[int]{a: 1}\nfmt.Println(v.m())"},
		{"var (\n\ta = 1\n\tb, c int = 2, 3\n\t_ = a\n)", "a, d := b, a\nfor i := range 3 { go func() { defer recover() }() }"},
		{"package main\nvar x = f()\nfunc f() int { return 1 }\nfunc main() { x++ }", "const (\n\tp = iota\n\tq\n)\nswitch y := any(x).(type) { case int: _ = y }"},
		{"L: for { select { default: break L } }", "func() {}()\nfunc (a int) int { return a }(3)"},
		{"x := `\n%get a.b/c\n`", "%get a.b/c@v1\nif q := 1; true { goto L }\nL:"},
		{"import . \"strings\"\nvar s struct { int; error; x, y struct{ z int } }", "s.x.z = len(ToUpper(s.Error()))\ns"},
		{"a, b := 1, func() { a := 2; b := 3 }", "a, b := b, a"},
		{"i := 0\nagain: i++\nif i < 3 { goto again }", "go println(i); go close(make(chan int)); defer print()"},
		{"\"abc", "'\\x'"},
		{"func f(", "}"},
		{"type (\n\tT struct{ u *U }\n\tU = T\n)\nfunc f(T) {}", "func (t T) M() { f(t) }\nT{}.M()"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		r := compiler.NewRewriter(standard(), "go1.24")
		for _, code := range []string{first, second} {
			text, number, err := r.Rewrite("In[1]", code)
			if err != nil {
				if list := (*wire.Errors)(nil); !errors.As(err, &list) || len(list.List) == 0 {
					t.Fatalf("no place in %v", err)
				} else {
					list.Traceback()
				}
				continue
			}
			if _, err := parser.ParseFile(token.NewFileSet(), "", text, 0); err != nil {
				t.Fatalf("%q becomes no Go: %v\n%s", code, err, text)
			}
			r.Commit(number, 1000)
		}
	})
}
