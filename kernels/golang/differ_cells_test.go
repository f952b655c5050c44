package golang_test

import (
	"math/rand/v2"
	"strings"
)

// differSetup declares what the cells are made of.
const differSetup = `import ("errors"; "fmt"; "math"; "sort"; "strings"; "time")
type Point struct { X, Y int; name string }
func (p Point) Sum(d int) int { return p.X + p.Y + d }
func (p *Point) Move(d int) *Point { p.X += d; return p }
func (p Point) String() string { return fmt.Sprint("<", p.X, " ", p.Y, ">") }
type base struct { ID int; tags []string }
func (b *base) Tag(i int) string { return b.tags[i] }
func (b base) Num() int { return b.ID }
func (b *base) Isnil() bool { return b == nil }
type item struct { *base; Point; err error; any any }
type shape interface { Sum(int) int }
type holder struct { shape; n int8 }
type level uint8
const high level = 200
const big = 1 << 62
const frac = 0.1
func (l level) Twice() level { return l * 2 }
func (l level) String() string { return fmt.Sprintf("L%d", uint8(l)) }
type temp float32
type name string
func (n name) Upper() name { return name(strings.ToUpper(string(n))) }
type flag bool
type ints []int
func (s ints) Len() int { return len(s) }
func (s *ints) Push(v int) int { *s = append(*s, v); return len(*s) }
type table map[name]level
type fn func(int) int
func (f fn) Do(x int) int { return f(x) }
type key struct { a any; b int }
type pair[T any] struct { A, B T }
func (p pair[T]) First() T { return p.A }
func (p *pair[T]) Swap() { p.A, p.B = p.B, p.A }
type mine struct{ code int }
func (m *mine) Error() string { return fmt.Sprint("mine ", m.code) }
func f(a int) int { return a + 1 }
func two() (int, error) { return x, nil }
func bad(ok bool) error { if ok { return nil }; return errBad }
func three() (int, string, bool) { return x, s, t }
func typednil() error { var m *mine; return m }
func many(pre string, xs ...int) string { return fmt.Sprint(pre, len(xs), xs == nil, xs) }
func anys(xs ...any) int { return len(xs) }
func typeOf(v any) string { return fmt.Sprintf("%T", v) }
func bump() int { x++; return x }
func flip() bool { t = !t; return t }
func grow() string { s += "."; if len(s) > 9 { s = "s" }; return s }
func repoint() *Point { pp = &Point{x, 1, "r"}; return pp }
func rename() map[string]int { m = map[string]int{"a": x, "r": 2}; return m }
func tr(n int) int { fmt.Print("t", n, ";"); return n }
func trs(s string) string { fmt.Print(s, ";"); return s }
func boom(n int) int { panic(fmt.Sprint("boom ", n)) }
func boomErr() bool { panic(errBad) }
func slice() []int { return y }
func theMap() map[string]int { return m }
func ptr() *int { return &x }
func nilp() *Point { return nil }
func arrp() *[3]string { return &arr }
func must(s fmt.Stringer) string { if s == nil { return "none" }; return s.String() }
func takeLevel(l level) level { return l }
func takeU8(u uint8) uint8 { return u }
func takeF32(v float32) float32 { return v }
func takeF(v float64) float64 { return v }
func takeI64(v int64) int64 { return v }
func apply(g func(int) int, v int) int { return g(v) }
func send(c chan<- int, v int) int { if len(c) < cap(c) { c <- v }; return len(c) }
func nothing() {}
func mkk() key { return key{x % 2, 2} }
func exitGo() int { defer func() { recover() }(); return y[len(y)] }
errBad := errors.New("bad")
x, y := 41, []int{1, 2, 3}
x2, zero, neg := 7, 0, -3
s, s2 := "héllo", "\x00\xff"
t := true
nm := name("nm")
fl := flag(true)
p := Point{1, 2, "pt"}
pp := &p
var np *Point
it := item{&base{7, []string{"a", "b"}}, Point{3, 4, ""}, nil, 5}
itn := item{}
ip := &it
h := holder{shape: p, n: 3}
var hn holder
m := map[string]int{"a": 1, "": 9}
mi := map[any]string{1: "one", "k": "two", 2.5: "f", Point{1, 2, "pt"}: "pt"}
mf := map[float64]int{1: 1, math.NaN(): 2, 0: 3}
mp := map[string]*Point{"p": &p}
ms := map[string][]int{"a": y}
mk := map[key]int{{1, 2}: 3}
mv := map[string]Point{"v": p}
tb := table{"t": 4}
pi := pair[int]{1, 2}
ps := &pair[string]{"u", "v"}
var nps *pair[string]
is := ints{4, 5}
var e error
em := error(&mine{3})
var i8 int8 = 127
var i16 int16 = -32768
var i32 int32 = math.MinInt32
var i64 int64 = math.MinInt64
var u8 uint8 = 255
var u16 uint16 = 65535
var u32 uint32 = 1 << 31
var u64 uint64 = math.MaxUint64
var u uint = 3
var up uintptr = 77
f32, f64 := float32(0.1), 0.1
nan, inf, nz := math.NaN(), math.Inf(1), math.Copysign(0, -1)
c128 := complex(1, -2)
var l level = 100
var tp temp = 36.6
ch := make(chan int, 3)
ch <- 5
var nch chan int
inc := func(a int) int { x2 += a; return x2 }
var nf func(int) int
var fv fn = f
var nmap map[string]int
arr := [3]string{"p", "q", "r"}
grid := [2][2]int{{1, 2}, {3, 4}}
parr := &arr
var nparr *[3]string
var st fmt.Stringer = p
var st2 fmt.Stringer = pp
var sh shape = pp
var nsh shape
var a any = 5
var an any
var as any = []int{1}
var ap any = pp
bs := []byte("by\xff")
rs := []rune("rün")
anyl := []any{1, "a", nil, p}
d := 90 * time.Second
ppp := &pp
xp := &x
anon := struct{ A int; B string }{1, "b"}
var once sort.IntSlice = []int{3, 1}
func dump() {
	fmt.Printf("%v %v %v %v %q %q %v %q %v|", x, y, x2, zero, s, s2, t, nm, fl)
	fmt.Printf("%#v %#v %v %v %v %v|", p, *pp, np == nil, *it.base, it.Point, it.err)
	fmt.Println(it.any, itn.base == nil, h, hn, m, mi, len(mf), len(mp), ms, mk, mv, tb, pi, ps, nps == nil, is, e, em)
	fmt.Println(neg, i8, i16, i32, i64, u8, u16, u32, u64, u, up, f32, f64, nan, inf, nz, c128, l, tp, len(ch), nf == nil, nmap == nil)
	fmt.Println(arr, grid, *parr, nparr == nil, st, st2, a, an, as, bs, rs, anyl, d, *xp, anon, once, sh, nsh)
}
`

// grammar are the forms of each type's expressions; {T} is one of type T.
var grammar = map[string][]string{
	"int": {"x", "x", "x2", "zero", "neg", "*xp", "0", "1", "-1", "7", "len({string})", "len({ints})", "cap({ints})", "len({map})", "len(ch)", "cap(ch)", "cap(nch)", "len(nmap)", "len(is)", "len(arr)", "len(bs)", "len(anyl)", "len(tb)",
		"f({int})", "inc({int})", "bump()", "tr({int})", "boom({int})", "{point}.X", "{point}.Sum({int})", "{pointer}.Y", "{pointer}.Sum({int})", "it.Num()", "itn.Num()", "it.ID", "itn.ID", "ip.X", "ip.base.ID", "it.Sum({int})", "h.Sum({int})", "hn.Sum(1)", "sh.Sum({int})", "nsh.Sum(2)",
		"{ints}[{int}]", "{map}[{string}]", "mf[{float64}]", "ms[{string}][{int}]", "mk[mkk()]", "grid[{int}][{int}]", "apply({func}, {int})", "{func}({int})", "nf({int})", "fv.Do({int})", "anys({any}, {any})", "anys(anyl...)", "anys()", "anys(nil)", "pi.First()", "pi.A", "is.Push({int})", "is.Len()", "once.Len()", "int({float64})", "int({int8})", "int({uint8})", "int({uint64})", "int({level})", "int({float32})", "int(d)", "int({rune})",
		"({int} + {int})", "{int} - {int}", "{int} * {int}", "{int} / {int}", "{int} % {int}", "{int} & {int}", "{int} | {int}", "{int} ^ {int}", "{int} &^ {int}", "{int} << {uint}", "{int} >> {uint8}", "{int} << {int}", "1 << {uint}", "-{int}", "+{int}", "^{int}", "<-ch", "send(ch, {int})", "'a' + {int}", "1e3 + {int}", "big + {int}", "(*pp).X", "(**ppp).X", "(*ppp).Y", "(&p).X", "anon.A", "rename()[\"r\"]", "mp[{string}].X", "mv[{string}].Y", "exitGo()", "(&it).Num()", "itn.Point.X"},
	"int8":     {"i8", "i8", "1", "-128", "h.n", "int8({int})", "{int8} + {int8}", "{int8} * {int8}", "{int8} / {int8}", "{int8} % {int8}", "-{int8}", "^{int8}", "{int8} << {uint}", "{int8} >> {uint8}", "{int8} &^ {int8}", "{int8} - 'a'"},
	"int16":    {"i16", "3", "int16({int})", "int16({int8})", "{int16} / {int16}", "{int16} - {int16}", "-{int16}"},
	"int32":    {"i32", "5", "int32({int64})", "{int32} / {int32}", "{int32} * {int32}", "-{int32}", "{rune} + {int32}"},
	"rune":     {"rs[{int}]", "'x'", "i32", "rune({int})"},
	"int64":    {"i64", "1<<40", "-1", "int64({int})", "int64({float64})", "int64({uint64})", "int64(d)", "takeI64({int64})", "{int64} / {int64}", "{int64} % {int64}", "{int64} + {int64}", "{int64} >> {uint64}", "-{int64}"},
	"uint8":    {"u8", "255", "bs[{int}]", "{string}[{int}]", "uint8({int})", "byte({int})", "uint8({level})", "takeU8({uint8})", "{uint8} + {uint8}", "{uint8} - {uint8}", "{uint8} / {uint8}", "{uint8} << {uint8}", "^{uint8}", "-{uint8}", "nm[{int}]"},
	"uint16":   {"u16", "9", "uint16({int})", "{uint16} * {uint16}", "{uint16} >> {int}"},
	"uint32":   {"u32", "uint32({int})", "{uint32} << {uint}", "{uint32} * {uint32}", "{uint32} % {uint32}"},
	"uint64":   {"u64", "1<<63", "uint64({int})", "uint64({uint8})", "{uint64} + {uint64}", "{uint64} / {uint64}", "{uint64} << {int}", "^{uint64}"},
	"uint":     {"u", "2", "70", "uint({int})", "{uint} - {uint}"},
	"uintptr":  {"up", "uintptr({int})", "{uintptr} + 1"},
	"float64":  {"f64", "nan", "inf", "nz", "0.1", "1e300", "frac", "1", "float64({int})", "float64({float32})", "float64({uint64})", "float64({int8})", "float64(tp)", "takeF({float64})", "{float64} + {float64}", "{float64} * {float64}", "{float64} / {float64}", "{float64} - {float64}", "-{float64}", "+{float64}", "d.Seconds()", "{float64} * 1e300", "1 / {float64}"},
	"float32":  {"f32", "0.1", "16777217", "1.00000017881393432617187499", "float32({float64})", "float32(tp)", "takeF32({float32})", "{float32} + {float32}", "{float32} * {float32}", "{float32} / {float32}", "{float32} - 0.3", "-{float32}"},
	"string":   {"s", "s2", "\"\"", "\"a\"", "\"k\\xff\"", "`raw`", "grow()", "trs({string})", "{string} + {string}", "arr[{int}]", "parr[{int}]", "nparr[{int}]", "arrp()[{int}]", "it.Tag({int})", "it.tags[{int}]", "itn.Tag(0)", "mi[{any}]", "many({string}, {int}, {int})", "many({string}, {ints}...)", "many({string})", "must({stringer})", "{stringer}.String()", "typeOf({any})", "{point}.String()", "{pointer}.String()", "it.String()", "fmt.Sprint({any}, {any})", "fmt.Sprintf(\"%v|%T|%#v|%q|%d|%x\", {any}, {any}, {any}, {any}, {any}, {any})", "fmt.Sprintln({any})", "ps.A", "ps.First()", "nps.First()", "nps.A", "string(nm)", "{err}.Error()", "d.String()", "l.String()", "anon.B", "p.name", "string({name})", "high.String()"},
	"bool":     {"t", "true", "flip()", "!{bool}", "{bool} && {bool}", "{bool} || {bool}", "{bool} == {bool}", "{bool} != {bool}", "bool(fl)", "boomErr()", "itn.Isnil()", "it.Isnil()", "{int} == {int}", "{int} < {int}", "{int} >= {int}", "{int8} > {int8}", "{uint8} <= {uint8}", "{float64} == {float64}", "{float64} < {float64}", "{float64} != {float64}", "{float32} == {float32}", "{string} == {string}", "{string} < {string}", "{string} >= {string}", "{any} == {any}", "{any} != {int}", "{int} == {any}", "{any} == {point}", "{any} == {pointer}", "{stringer} == {pointer}", "{stringer} == {point}", "{err} == {err}", "{err} != nil", "{any} == nil", "nil == {pointer}", "{pointer} == {pointer}", "{pointer} != nil", "{ints} == nil", "{map} != nil", "{func} == nil", "ch == nch", "nch == nil", "{point} == {point}", "arr == *parr", "arr == [3]string{}", "grid[0] == grid[1]", "it == itn", "itn == itn", "h == hn", "sh == nsh", "{level} == {level}", "{level} > {level}", "{name} < {name}", "{name} == \"nm\"", "fl == true", "c128 == 1", "c128 == c128", "{any} == {stringer}", "{stringer} == {any}", "{any} == {err}", "pi == pi", "anon == anon", "d > 5", "d == 90e9", "{rune} == 'x'", "{uint64} > 1", "as == as", "tp > {temp}", "{any} == 5", "{any} == \"a\"", "sh == {pointer}", "st == sh", "mkk() == mkk()", "hn.shape == nil"},
	"level":    {"l", "high", "5", "{level} + {level}", "{level} * 3", "{level} - high", "l.Twice()", "high.Twice()", "takeLevel({level})", "takeLevel(high)", "^{level}", "-{level}", "{level} << {uint}", "high << {uint}", "tb[{name}]", "{level} / {level}"},
	"temp":     {"tp", "0.1", "{temp} * 3", "{temp} + 0.1", "-{temp}", "{temp} / {temp}"},
	"name":     {"nm", "\"t\"", "nm.Upper()", "{name} + {name}", "{name} + \"x\""},
	"point":    {"p", "*pp", "*{pointer}", "it.Point", "mv[{string}]", "ip.Point", "**ppp", "itn.Point"},
	"pointer":  {"pp", "np", "&p", "{pointer}.Move({int})", "p.Move({int})", "it.Move({int})", "&it.Point", "repoint()", "nilp()", "mp[{string}]", "*ppp"},
	"ints":     {"y", "slice()", "ms[{string}]", "is", "grid[{int}][:]"},
	"map":      {"m", "nmap", "theMap()", "rename()"},
	"func":     {"f", "inc", "nf", "fv"},
	"any":      {"a", "an", "as", "ap", "nil", "{int}", "{string}", "{bool}", "{float64}", "{float32}", "{point}", "{pointer}", "{level}", "{name}", "{err}", "{stringer}", "{ints}", "{map}", "{int8}", "{uint64}", "'r'", "2.5", "1", "high", "anyl[{int}]", "it.any", "c128", "typednil()", "fl", "tb", "mi", "bs", "rs", "d", "{temp}", "{uintptr}", "{int32}", "arr", "grid", "anon", "ps", "ip", "h", "{int16}", "{uint16}", "{uint32}", "{int64}", "{uint8}", "frac", "big", "typednil() == nil", "pi", "is", "hn", "itn.any", "nan", "nz", "em"},
	"err":      {"e", "em", "bad({bool})", "typednil()", "it.err", "errBad", "itn.err"},
	"stringer": {"st", "st2", "{point}", "{pointer}", "{level}", "it.Point", "nil", "ip", "d"},
}

// differTypes are the types by which a cell is begun.
var differTypes = []string{"int", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "uintptr", "float64", "float32", "string", "bool", "bool", "level", "temp", "name", "point", "pointer", "any", "any", "err", "stringer", "rune", "int", "string", "bool"}

// places are what can be set, by type.
var places = map[string][]string{
	"int":      {"x", "x2", "p.X", "pp.Y", "np.X", "it.ID", "itn.ID", "it.Point.X", "ip.X", "ip.base.ID", "y[{int}]", "m[{string}]", "nmap[{string}]", "mf[f64]", "ms[{string}][{int}]", "grid[{int}][{int}]", "*xp", "*ptr()", "(*pp).X", "mp[{string}].X", "pi.A", "is[{int}]", "once[{int}]", "anon.A", "mk[mkk()]", "slice()[{int}]", "repoint().X", "(**ppp).X", "theMap()[{string}]"},
	"int8":     {"i8", "h.n"},
	"int16":    {"i16"},
	"int32":    {"i32", "rs[{int}]"},
	"int64":    {"i64"},
	"uint8":    {"u8", "bs[{int}]"},
	"uint16":   {"u16"},
	"uint32":   {"u32"},
	"uint64":   {"u64"},
	"float64":  {"f64"},
	"float32":  {"f32"},
	"string":   {"s", "arr[{int}]", "parr[{int}]", "nparr[{int}]", "arrp()[{int}]", "it.tags[{int}]", "mi[{any}]", "ps.A", "nps.A", "p.name", "anon.B"},
	"bool":     {"t"},
	"level":    {"l", "tb[{name}]"},
	"temp":     {"tp"},
	"name":     {"nm"},
	"point":    {"p", "*pp", "*np", "it.Point", "mv[{string}]", "ip.Point"},
	"pointer":  {"pp", "*ppp", "mp[{string}]"},
	"ints":     {"y", "ms[{string}]"},
	"any":      {"a", "an", "it.any", "anyl[{int}]"},
	"err":      {"e", "it.err"},
	"stringer": {"st", "st2"},
}

// differ makes cells.
type differ struct{ *rand.Rand }

func (d differ) pick(all []string) string { return all[d.IntN(len(all))] }

// of is an expression of a type.
func (d differ) of(kind string, depth int) string {
	for {
		form := d.pick(grammar[kind])
		if depth > 0 || !strings.Contains(form, "{") {
			return d.fill(form, depth)
		}
		form = grammar[kind][d.IntN(min(4, len(grammar[kind])))] // what is simple stands first
		if !strings.Contains(form, "{") {
			return form
		}
	}
}

// fill fills the gaps of a form.
func (d differ) fill(form string, depth int) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(form, "{")
		kind, after, closed := strings.Cut(rest, "}")
		if !ok || !closed || grammar[kind] == nil {
			return b.String() + form
		}
		x := d.of(kind, depth-1)
		if strings.Contains(x, " ") && !strings.HasSuffix(x, ")") {
			x = "(" + x + ")"
		}
		b.WriteString(before + x)
		form = after
	}
}

// statement is one to be run for its effect.
func (d differ) statement() string {
	kind := d.pick(differTypes)
	if all := places[kind]; all != nil && d.IntN(5) > 0 {
		to := d.fill(d.pick(all), d.IntN(2))
		switch {
		case d.IntN(6) == 0:
			return to + d.pick([]string{"++", "--"})
		case d.IntN(2) == 0:
			return to + " " + d.pick([]string{"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "&^=", "<<=", ">>="}) + " " + d.of(kind, d.IntN(3))
		}
		return to + " = " + d.of(kind, d.IntN(3))
	}
	return d.fill(d.pick([]string{"fmt.Println({any}, {any})", "fmt.Print({any}, {any}, {any})", "fmt.Printf(\"%v %T %#v\\n\", {any}, {any}, {any})", "fmt.Printf(\"%5d|%-4q|%x|%t\\n\", {int}, {string}, {string}, {bool})", "fmt.Println(two())", "ps.Swap()", "nps.Swap()", "nothing()", "fmt.Printf(\"%d %!\\n\", {any})"}), 1+d.IntN(2))
}

// differCell is a cell, and how its last expression is shown.
type differCell struct {
	before, last, show string
}

func (c differCell) code() string {
	if c.before == "" {
		return c.last
	}
	return c.before + "\n" + c.last
}

// cell is a random cell.
func (d differ) cell() (c differCell) {
	switch d.IntN(4) {
	case 0:
		c.last = d.statement()
	case 1:
		c.before, c.last = d.statement(), d.of(d.pick(differTypes), d.IntN(3))
	default:
		c.last = d.of(d.pick(differTypes), d.IntN(4))
	}
	if d.IntN(40) == 0 {
		c.last = d.pick([]string{"two()", "three()", "bad(t)", "typednil()", "it.err", "nothing()", "anyl", "nil"})
	}
	return c
}
