package golang_test

import "testing"

// TestDirect has what cells are evaluated without the compiler, and that they are what
// the compiler makes of them.
func TestDirect(t *testing.T) {
	const first = `import ("errors"; "fmt"; "strings"; "time")
type Point struct { X, Y int; name string }
func (p Point) Sum(d int) int { return p.X + p.Y + d }
func (p *Point) move(d int) *Point { p.X += d; return p }
type base struct { ID int; tags []string }
func (b *base) Tag(i int) string { return b.tags[i] }
func (b base) String() string { return "base" }
type item struct { *base; Point; err error }
type level uint8
const high level = 200
func (l level) Twice() level { return l * 2 }
type stack[T any] struct { items []T }
func (s *stack[T]) Top() T { return s.items[len(s.items)-1] }
func f(a int) int { return a + 1 }
func pair() (int, error) { return 3, nil }
func fail(ok bool) error { if ok { return nil }; return errors.New("bad") }
func many(pre string, xs ...int) string { return fmt.Sprint(pre, len(xs), xs == nil) }
func anyOf(x any) string { return fmt.Sprintf("%T", x) }
func lev(l level) level { return l }
func nothing() {}
func up() int { x++; return x }
func must(s fmt.Stringer) string { if s == nil { return "none" }; return s.String() }
var calls int
func px() *int { return &x }
func ys() []int { return y }
func ms() map[string]int { return m }
func pa() *[3]int { return nil }
func two(a, b any) string { return fmt.Sprint(a, b) }
func movep() int { p.X++; pp = &Point{p.X * 10, 0, ""}; return p.X }
func order(n int) int { calls = calls*10 + n; return n }
x, y := 41, []int{1, 2, 3}
s := "héllo"
p := Point{1, 2, "pt"}
pp := &p
var np *Point
it := item{&base{7, []string{"a", "b"}}, Point{3, 4, ""}, nil}
m := map[string]int{"a": 1}
mi := map[any]string{1: "one", "k": "two"}
st := &stack[string]{[]string{"u", "v"}}
var sb strings.Builder
sb.WriteString("abc")
when := time.Date(2024, 2, 3, 0, 0, 0, 0, time.UTC)
var e error
var i8 int8 = 127
var u8 uint8 = 255
f32, f64 := float32(0.1), 0.1
var l level = 100
ch := make(chan int, 3)
ch <- 5
inc := func() int { x++; return x }
var nf func()
var nm map[string]int
st2 := []int{9, 8}
arr := [3]string{"p", "q", "r"}
parr := &arr
var fs fmt.Stringer = it.base
b := true
zero := 0
`
	r := rewriter(t, first)
	s := start(t)
	s.is(first, "", "")
	for _, c := range []struct{ code, stdout, text string }{
		{"x", "", "41"}, {"x + 1", "", "42"}, {"(x+1)*2 - len(y)", "", "81"},
		{"f(3)", "", "4"}, {"f(f(x))", "", "43"}, {"pair()", "", "3"}, {"fail(true)", "", ""}, {"fail(x > 100)", "", "bad"}, {"x;", "", ""},
		{"fmt.Println(x, len(y), s)", "41 3 héllo\n", ""}, {"import \"fmt\"\nfmt.Printf(\"%v %T %s\\n\", p, p, it)", "{1 2 pt} main.Point base\n", ""},
		{"fmt.Sprint(nil, e, 1.5, 'a', \"b\")", "", "<nil> <nil> 1.5 97b"}, {"fmt.Println()", "\n", ""}, {"fmt.Print(y...)", "", "!"},
		{"p.X", "", "1"}, {"p.name", "", "pt"}, {"pp.Y + p.X", "", "3"}, {"p.Sum(10)", "", "13"}, {"pp.Sum(1)", "", "4"}, {"p.move(5).X", "", "6"},
		{"pp.move(-5)", "", "&{X:1 Y:2 name:pt}"}, {"*pp", "", "{X:1 Y:2 name:pt}"}, {"&x == &x", "", "true"}, {"(&p).move(0).Sum(0)", "", "3"},
		{"it.ID", "", "7"}, {"it.Tag(1)", "", "b"}, {"it.base.tags[0]", "", "a"}, {"it.Sum(1)", "", "8"}, {"it.String()", "", "base"}, {"it.Point == p", "", "false"}, {"it.err == nil", "", "true"},
		{"lev(high)", "", "200"}, {"l + 56", "", "156"}, {"l * 3", "", "44"}, {"l.Twice()", "", "200"}, {"l == high", "", "false"}, {"lev(5) < l", "", "true"},
		{"many(\"a\")", "", "a0 true"}, {"many(\"a\", y...)", "", "a3 false"}, {"many(\"a\", x, 2)", "", "a2 false"},
		{"anyOf(x)", "", "int"}, {"anyOf(nil)", "", "<nil>"}, {"anyOf(2.0)", "", "float64"}, {"anyOf('a')", "", "int32"}, {"anyOf(e)", "", "<nil>"}, {"anyOf(p)", "", "main.Point"}, {"anyOf(x == 1)", "", "bool"}, {"anyOf(i8)", "", "int8"},
		{"must(it)", "", "base"}, {"must(nil)", "", "none"}, {"must(fs)", "", "base"}, {"fs.String()", "", "base"}, {"nothing()", "", ""},
		{"x + f(1)", "", "43"}, {"p.X - f(p.Y)", "", "-2"}, {"fmt.Sprint(x, f(x), f(1))", "", "41 42 2"}, {"f(1) + pp.Y*2 + len(y)", "", "9"}, {"two(*px(), m[\"a\"])", "", "41 1"}, {"two(f(1), *px()+1)", "", "2 42"}, {"(p.Sum)(10)", "", "13"}, {"order(1) + order(2)*order(3)", "", "7"}, {"calls", "", "123"}, {"b || order(9) > 0", "", "true"}, {"!b && order(9) > 0", "", "false"}, {"calls", "", "123"},
		{"m[\"a\"] + m[\"z\"]", "", "1"}, {"mi[1] + mi[\"k\"]", "", "onetwo"}, {"len(m)", "", "1"}, {"cap(ch)", "", "3"}, {"arr[x-40]", "", "q"}, {"parr[2]", "", "r"}, {"s[1]", "", "195"}, {"s + \"!\"", "", "héllo!"}, {"s < \"i\"", "", "true"}, {"len(s)", "", "6"},
		{"i8 + 1", "", "-128"}, {"-i8", "", "-127"}, {"u8 + 1", "", "0"}, {"^u8", "", "0"}, {"u8 << 1", "", "254"}, {"i8 >> 3", "", "15"}, {"x << 60", "", "-8070450532247928832"}, {"x % 7", "", "6"}, {"-x / 7", "", "-5"}, {"x &^ 1", "", "40"}, {"1 << x", "", "2199023255552"},
		{"f32 + 0.2", "", "0.3"}, {"f64 + 0.2", "", "0.30000000000000004"}, {"f32 * f32", "", "0.010000001"}, {"float64(x) / 4", "", "10.25"}, {"int64(f64 * 100)", "", "10"}, {"float64(f32)", "", "0.10000000149011612"}, {"uint8(x + 250)", "", "35"}, {"int(u8) + 1", "", "256"},
		{"<-ch", "", "5"}, {"inc()", "", "42"}, {"x", "", "42"}, {"e == nil", "", "true"}, {"np == nil", "", "true"}, {"fs != nil", "", "true"}, {"display(x)", "", ""},
	} {
		program, err := r.Direct("In[1]", c.code)
		if c.text == "!" { // an error of the checker's
			if err == nil {
				t.Errorf("%s: no error", c.code)
			}
			continue
		}
		if err != nil || program == nil {
			t.Errorf("%s is left to the compiler: %v", c.code, err)
		}
		s.is(c.code, c.stdout, c.text)
	}
	for _, code := range []string{"st.Top()", "sb.Len()", "when.Year()", "sb.String()"} {
		if program, err := r.Direct("In[1]", code); err != nil || program == nil {
			t.Errorf("%s is left to the compiler: %v", code, err)
		}
	}
	s.is("st.Top() + sb.String()", "", "vabc")
	s.is("when.Year() + sb.Len()", "", "2027")
	s.is("when.Add(24 * 3600 * 1000000000).Day()", "", "4")
	for _, c := range []struct{ code, stdout, text string }{
		{"x = 7", "", ""}, {"x++\nx", "", "8"}, {"x--; x -= 2; x", "", "5"}, {"x *= f(x)\nx", "", "30"}, {"x <<= 2; x", "", "120"}, {"x &^= 8; x", "", "112"}, {"x %= 100; x", "", "12"},
		{"p.X = 10\np", "", "{X:10 Y:2 name:pt}"}, {"pp.name += \"!\"\np.name", "", "pt!"}, {"*pp = it.Point; p", "", "{X:3 Y:4 name:}"}, {"pp = &p; pp.X++; p.X", "", "4"}, {"it.Point.X = 0; it.ID++; it.base.ID", "", "8"},
		{"y[1] = x; y", "", "[1 12 3]"}, {"y[2] += y[0]; y", "", "[1 12 4]"}, {"arr[1] = s; parr[0] = \"z\"; arr", "", "[z héllo r]"}, {"m[\"b\"] = 5; m[\"b\"]++; m", "", "map[a:1 b:6]"}, {"mi[\"n\"] = \"new\"; len(mi)", "", "3"},
		{"i8 = 127; i8++; i8", "", "-128"}, {"f32 /= 3; f32", "", "0.033333335"}, {"l = high; l += 100; l", "", "44"}, {"s = s + \"?\"; s", "", "héllo?"}, {"b = !b; b", "", "false"},
		{"e = fail(false); e", "", "bad"}, {"e = nil; e == nil", "", "true"}, {"fs = it; fs.String()", "", "base"}, {"np = pp; np.Y", "", "4"}, {"np = nil; np == nil", "", "true"}, {"nf = nothing; nf()", "", ""}, {"inc = nil", "", ""}, {"y = nil; len(y)", "", "0"}, {"y = st2; y", "", "[9 8]"}, {"x = order(4)", "", ""}, {"x", "", "4"},
		// A variable beside a call that sets it is read when the compiler reads it.
		{"x = 1; inc = up", "", ""}, {"fmt.Println(x, inc(), inc())", "3 2 3\n", ""}, {"x + inc()", "", "8"}, {"x == inc()", "", "true"}, {"fmt.Sprint(x, f(inc()))", "", "6 7"}, {"x += inc(); x", "", "14"},
	} {
		if program, err := r.Direct("In[1]", c.code); err != nil || program == nil {
			t.Errorf("%s is left to the compiler: %v", c.code, err)
		}
		s.is(c.code, c.stdout, c.text)
	}
	s.is("x = 1\nfunc() { fmt.Println(x, inc(), inc()); fmt.Println(x + inc()); fmt.Println(x == inc()); fmt.Println(fmt.Sprint(x, f(inc()))); x += inc() }()\nx", "3 2 3\n8\ntrue\n6 7\n", "14")
	for _, c := range []struct{ code, text string }{ // of what is left to it
		{"p = Point{1, 2, \"pt\"}; pp = &p", ""}, {"two(*pp, movep())", "{20 0 } 2"}, {"pp = &p; pp.X + movep()", "33"}, {"func() string { return two(p, movep()) }()", "{4 2 pt} 4"},
		{"len(pa()) + cap(pa())", "6"}, {"sum := p.Sum", ""}, {"p.X = 100; sum(0)", "6"}, {"ff := func(g func(int) int) int { p.X++; return g(0) }", ""}, {"ff(p.Sum)", "102"}, {"two(p, movep())", "{102 2 pt} 102"},
	} {
		s.is(c.code, "", c.text)
	}
	s.is("y = []int{1, 2, 3}; x = 42; nf = nil", "", "")
	for code, has := range map[string]string{
		"np.X = 1": "nil pointer dereference", "*np = p": "nil pointer dereference", "y[x] = 1": "index out of range [42] with length 3", "nm[\"a\"] = 1": "assignment to entry in nil map", "x /= zero": "integer divide by zero",
		"y[x]": "index out of range [42] with length 3", "arr[-zero-1+zero]": "index out of range [-1]", "s[x]": "index out of range [42] with length 7",
		"x / zero": "integer divide by zero", "np.X": "nil pointer dereference", "np.Sum(1)": "nil pointer dereference", "nf()": "nil pointer dereference",
		"1 << (zero - 1)": "negative shift amount", "mi[any(y)]": "unhashable type []int", "it.base.Tag(9)": "index out of range [9] with length 2",
	} {
		s.fails(code, "panic", has, "the cell")
	}
	for _, code := range []string{"a := x", "x, zero = 1, 2", "y[zero] = f(1)", "*pp = *pp.move(1)", "m[s], b = m[s]", "_ = x", "x = y[zero:][0]", "p = Point{}", "x*2 - inc()", "m[s] + order(1)", "len(y) + order(1)", "x + inc() + inc()",
		"pp.X + movep()", "two(pp.X, movep())", "two(*pp, movep())", "pp.X += movep()", "it.ID += order(1)", "it.X + it.Sum(order(1))", "-*px() + inc()", "two(-*px(), inc())", "two(x + 1, inc())", "int64(*px()) + int64(inc())", "(ys()[0] + 1) * inc()", "ys()[0] * inc()", "ms()[\"a\"] + inc()", "px() == px() && *px() == inc()", "order((f(1) + 1) / f(2) + inc())", "pp.move(1).X + movep()", "!(*px() == 1) == (inc() == 1)", "pp.name + fmt.Sprint(it)",
		"inc = pp.move(1).Sum == nil", "p.Sum", "two(p.Sum, 1)", "two((p.Sum), 1)", "mi[\"k\"] = it.String", "e = it.err; f2 = p.Sum", "len(pa())", "cap(pa())", "len(*pa())", "p.Sum(inc())", "y[order(0)]", "-x == order(1)", "func() {}()", "Point{}", "[]int{x}", "strings.ToUpper(s)", "y[1:]", "append(y, 1)", "any(x)", "go nothing()",
		"f(\n1)", "if b { }", "import _ \"os\"\nx", "for {}", "high", "int8(f64)", "complex(f64, 1)", "st.items[0:1]", "i8 >> -(255 << u8)"} {
		if program, _ := r.Direct("In[1]", code); program != nil {
			t.Errorf("%s is not left to the compiler", code)
		}
	}
}
