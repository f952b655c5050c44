package golang_test

import "testing"

// TestLaterMethods has methods of types of earlier cells.
func TestLaterMethods(t *testing.T) {
	s := start(t)
	s.is("import \"fmt\"\ntype Point struct{ x, y int }\nfunc (p Point) Sum() int { return p.x + p.y }\ntype Line struct{ a, b Point }\nfunc mid(l Line) Point { return Point{(l.a.x + l.b.x) / 2, 0} }\nconst zero = 0", "", "")
	s.is("func (p *Point) Move(d int) { p.x += d }", "", "")
	s.is("func (p Point) String() string { return fmt.Sprintf(\"<%d %d>\", p.x, p.y+zero) }\np := Point{1, 2}\np.Move(5)\np", "", "<6 2>")
	s.is("l := Line{Point{2, 0}, p}\nfmt.Println(l, mid(l).Sum())", "{<2 0> <6 2>} 4\n", "")
	s.is("var f fmt.Stringer = p\nf.String()", "", "<6 2>")
	// Now there are values, which a method would not be one of.
	s.fails("func (p Point) Len() int { return 2 }", "CompileError", "In[6]:1:9", "Point is declared in an earlier cell, and in use")
	s.fails("func (l Line) Len() int { return 2 }", "CompileError", "Line is declared in an earlier cell, and in use")
	s.is("p.Sum()", "", "8")

	// Constants of the type, generics, a group, and functions that fail, with their lines.
	s.is("type level int\nconst (\n\tlow level = iota\n\thigh\n)\n\n\nfunc check(l level) level {\n\treturn []level{low}[l]\n}", "", "")
	s.is("x := 1\nfunc (l level) String() string { return [...]string{\"low\", \"high\"}[l] }\nhigh", "", "high")
	s.fails("check(high)", "panic", "index out of range [1] with length 1", "In[9]:9  check", "the cell")
	s.is("type (\n\tStack[T any] struct{ items []T }\n\tPair struct{ s *Stack[int] }\n)", "", "")
	s.is("func (s *Stack[T]) Push(v T) { s.items = append(s.items, v) }", "", "")
	s.is("func (s *Stack[T]) Len() int { return len(s.items) }\nq := Pair{&Stack[int]{}}\nq.s.Push(3)\nq.s.Len()", "", "1")

	// A method that is there is declared anew, and one that is wrong leaves nothing.
	s.is("type T struct{}\nfunc (T) A() int { return 1 }", "", "")
	s.is("func (T) A() int { return 2 }", "", "")
	s.fails("y := 2\nfunc (t T) B() int { return nosuch }", "CompileError", "In[17]:2:29: undefined: nosuch")
	s.fails("func (t T) B() int { return t.A() + t.C() }", "CompileError", "In[18]:1:39", "t.C undefined")
	s.is("func (t T) B() int {\n\treturn t.A() * 10\n}\nT{}.B()", "", "20")

	// A name that a declaration uses means something else by now.
	s.is("const size = 3\ntype Row struct{ cells [size]int }", "", "")
	s.is("const size = 4", "", "")
	s.fails("func (r Row) Len() int { return len(r.cells) }", "CompileError", "Row is declared in an earlier cell")
	s.is("type Old struct{ Row }\nfunc (o Old) Len() int { return len(o.cells) }\nOld{}.Len()", "", "3")
}
