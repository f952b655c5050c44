package golang_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

func (s *session) variables() (list []api.Variable, total int, lines string) {
	s.t.Helper()
	return kerneltest.Variables(s.t, s.k, bound)
}

// What cells have declared is told as Go writes it, and the newest of a name.
func TestVariables(t *testing.T) {
	s := start(t)
	tell := func(want string) {
		t.Helper()
		if list, total, got := s.variables(); got != want || total != len(list) {
			t.Errorf("of %d, got\n%s\nwant\n%s", total, got, want)
		}
	}
	tell("")
	s.is(`import ("errors"; "time"; "bytes")
type Point struct { X, Y int; name string; next *Point }
func f() {}
const c = 1
var n, big, text, f64, yes = 42, uint64(1)<<63, "a\n\"b\"", 1.5, true
var list, words, none, grid = []int{1, 2, 3}, []string{"a"}, []int(nil), [2][3]int{}
var m, ints, empty = map[string]int{"b": 2, "a": 1}, map[int]string{}, map[string]bool(nil)
var p, pp, np = Point{1, 2, "n", nil}, &Point{3, 4, "m", &Point{}}, (*Point)(nil)
var err, noErr, any1, nothing = errors.New("bad"), error(nil), any(7), any(nil)
var ch, fn, when, took = make(chan int, 3), f, time.Date(2024, 2, 29, 1, 2, 3, 0, time.UTC), 90 * time.Second
var many, long = make([]int, 1_000_000), string(bytes.Repeat([]byte("x"), 1_000_000))
var buf, points = bytes.NewBufferString("abc"), []Point{{X: 1}, {X: 2}}
ch <- 1
for i := range 5 { ints[4-i] = "v" }`, "", "")
	tell(`any1 any null 7
big uint64 null 9223372036854775808
buf *bytes.Buffer null 
ch chan int 1 
empty map[string]bool 0 map[]
err error null "bad"
f64 float64 null 1.5
fn func() null 
grid [2][3]int 2 [[0 0 0] [0 0 0]]
ints map[int]string 5 map[0:"v" 1:"v" 2:"v" 3:"v" 4:"v"]
list []int 3 [1 2 3]
long string 1000000 "` + strings.Repeat("x", 119) + `…
m map[string]int 2 map["a":1 "b":2]
many []int 1000000 [0 0 0 0 0 0 0 0 0 0 …]
n int null 42
noErr error null <nil>
none []int 0 []
nothing any null <nil>
np *main.Point null <nil>
p main.Point null {X:1 Y:2 name:"n" next:<nil>}
points []main.Point 2 [{X:1 Y:0 name:"" next:<nil>} {X:2 Y:0 name:"" next:<nil>}]
pp *main.Point null &{X:3 Y:4 name:"m" next:&{X:0 Y:0 name:"" next:<nil>}}
text string 5 "a\n\"b\""
took time.Duration null 1m30s
when time.Time null 2024-02-29T01:02:03Z
words []string 1 ["a"]
yes bool null true
`)
	s.is(`n := "new"; type Point struct { Z int }`, "", "")
	s.is(`n += "er"`, "", "")
	if _, _, got := s.variables(); !strings.Contains(got, "n string 5 \"newer\"\n") || strings.Contains(got, "\nn int") {
		t.Errorf("anew:\n%s", got)
	}
	s.run("half := 1; panic(half); whole := 2")
	if _, _, got := s.variables(); !strings.Contains(got, "half int null 1\n") || strings.Contains(got, "whole") {
		t.Errorf("of a cell that panics:\n%s", got)
	}
	var code strings.Builder
	for i := range api.MaxVariables + 200 {
		fmt.Fprintf(&code, "var v%04d = %d\n", i, i)
	}
	_, before, _ := s.variables()
	s.is(code.String(), "", "")
	if list, total, _ := s.variables(); len(list) != api.MaxVariables || total != before+api.MaxVariables+200 || list[len(list)-1].Size != nil {
		t.Errorf("%d of %d", len(list), total)
	}
}

// A key that is no number comes before those that are, which keep their order.
func TestVariablesInOrder(t *testing.T) {
	s := start(t)
	s.is("m := map[float64]int{}; for i := range 8 { m[float64(i)] = i }; zero := 0.0; m[zero/zero] = -1", "", "")
	if _, _, got := s.variables(); !strings.Contains(got, "m map[float64]int 9 map[NaN:-1 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7]\n") {
		t.Error(got)
	}
}

// Nothing of the cells' is called, and nothing that they hold ends the worker.
func TestVariablesThatAreHostile(t *testing.T) {
	s := start(t)
	s.is(`import ("fmt"; "os"; "sync"; "unsafe")
var ran int
type Loops struct { X int }
func (Loops) String() string { ran++; for {} }
func (Loops) Error() string { ran++; for {} }
func (Loops) Format(fmt.State, rune) { ran++; os.Exit(3) }
func (Loops) GoString() string { ran++; panic("x") }
func (Loops) MarshalJSON() ([]byte, error) { ran++; for {} }
func (Loops) MarshalText() ([]byte, error) { ran++; for {} }
type Kind int
func (Kind) String() string { ran++; for {} }
type List struct { next *List; value any }
type Wide struct { a, b, c, d, e, f, g, h, i, j, k, l [100]int }
var loops, ploops, kind, asErr, asAny = Loops{1}, &Loops{2}, Kind(3), error(Loops{4}), any(Kind(5))
var keyed = map[Loops]Kind{{1}: 2}
var list *List = &List{}; list.next = list; list.value = list
var itself any; itself = &itself
var self []any = make([]any, 1); self[0] = self
type Rec map[string]Rec; var rec = Rec{}; rec["r"] = rec
var deep any; for range 1_000_000 { deep = &List{nil, deep} }
var wide Wide
var wild = *(*string)(unsafe.Pointer(&[2]uintptr{0x1000, 50}))
var wilder = *(*[]int)(unsafe.Pointer(&[2]uintptr{0x1000, 50}))
var wildest = (*Loops)(unsafe.Pointer(uintptr(0x1000)))
var bytes = []byte{0xff, 0}
var invalid = "\xff\xfe"
var lock sync.Mutex; lock.Lock()
var huge = make([]byte, 200<<20)
var nothing *[1 << 40]byte
var nan = map[float64]int{}; for i := range 3 { var z float64; nan[z/z] = i }
type shy struct { err error; f func(); ch chan int; u unsafe.Pointer; i interface{ M() } }
var hidden = shy{err: Loops{}}`, "", "")
	check := func() {
		t.Helper()
		_, _, got := s.variables()
		for _, want := range []string{"asAny any null 5\n", "asErr error null {X:4}\n", "bytes []uint8 2 [255 0]\n", "deep any null &{next:<nil> value:&{next:<nil> value:&{next:<nil> value:&…}}}\n",
			"hidden main.shy null {err:{X:0} f:<nil> ch:<nil> u:<unsafe.Pointer> i:<nil>}\n", "huge []uint8 209715200 [0 0 0 0 0 0 0 0 0 0 …]\n",
			"invalid string 2 \"\\xff\\xfe\"\n", "itself any null &&&&…\n", "keyed map[main.Loops]main.Kind 1 map[{X:1}:2]\n", "kind main.Kind null 3\n",
			"list *main.List null &{next:&{next:&{next:&… value:&…} value:&{next:&… value:&…}} value:&{next:&{next:&…", "lock sync.Mutex null \n", "loops main.Loops null {X:1}\n",
			"nothing *[1099511627776]uint8 null <nil>\n", "ploops *main.Loops null &{X:2}\n", "ran int null 0\n", "rec main.Rec 1 map[\"r\":map[\"r\":map[\"r\":map[…]]]]\n",
			"self []any 1 [[[[…]]]]\n", "wild string 50 \n", "wilder []int 50 \n", "wildest *main.Loops null \n", "nan map[float64]int 3 map[NaN:"} {
			if !strings.Contains(got, want) {
				t.Errorf("lacks %q", want)
			}
		}
		if t.Failed() {
			t.Logf("%s", got)
		}
	}
	check()
	s.is("ran", "", "0")
	check()

	// What goroutines write at the same time.
	s.is(`import "time"
var shared = map[string]int{}; var torn any; var header []string; var word string; var plain []int; var ptr *List
stop := make(chan bool)
for g := range 4 { go func() { for i := 0; ; i++ { select { case <-stop: return; default: }
	if g == 0 { shared[fmt.Sprint(i%1000)] = i; delete(shared, fmt.Sprint((i+500)%1000)) }
	if i%2 == 0 { torn, header, word, plain, ptr = i, make([]string, 1), "a", make([]int, 1), nil } else { torn, header, word, plain, ptr = "text", make([]string, 100000), string(make([]byte, 5000)), make([]int, 100000), &List{} }
} }() }`, "", "")
	for range 100 {
		if _, _, got := s.variables(); !strings.Contains(got, "shared map[string]int ") || !strings.Contains(got, "loops main.Loops null {X:1}\n") {
			t.Fatalf("beside goroutines:\n%s", got)
		}
	}
	s.is("close(stop)\ntime.AfterFunc(time.Hour, func() {})\ntime.Sleep(100 * time.Millisecond)\nshared = map[string]int{\"a\": 1}", "", "")
	if _, _, got := s.variables(); !strings.Contains(got, "shared map[string]int 1 map[\"a\":1]\n") {
		t.Errorf("after them:\n%s", got)
	}
	s.is("ran", "", "0")
}
