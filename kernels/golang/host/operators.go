package host

import (
	"reflect"
	"strconv"

	"github.com/cellard/cellard/kernels/golang/live"
	"github.com/cellard/cellard/kernels/golang/wire"
)

// basics are the types that programs name.
var basics = map[string]reflect.Type{
	"bool": reflect.TypeFor[bool](), "string": reflect.TypeFor[string](),
	"int": reflect.TypeFor[int](), "int8": reflect.TypeFor[int8](), "int16": reflect.TypeFor[int16](),
	"int32": reflect.TypeFor[int32](), "int64": reflect.TypeFor[int64](), "rune": reflect.TypeFor[rune](),
	"uint": reflect.TypeFor[uint](), "uint8": reflect.TypeFor[uint8](), "uint16": reflect.TypeFor[uint16](),
	"uint32": reflect.TypeFor[uint32](), "uint64": reflect.TypeFor[uint64](), "byte": reflect.TypeFor[byte](),
	"uintptr": reflect.TypeFor[uintptr](), "float32": reflect.TypeFor[float32](), "float64": reflect.TypeFor[float64](),
}

// constant is a constant of its own type, or else of its place's.
func (b *builder) constant(n *wire.Node, want reflect.Type) value {
	t := want
	if n.Name != "" {
		t = basics[n.Name]
	}
	if t == nil {
		return b.fail(n, "no type")
	}
	v, text := reflect.New(t).Elem(), string(n.Text)
	var err error
	switch {
	case v.Kind() == reflect.Bool:
		v.SetBool(text == "true")
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.CanInt():
		var i int64
		i, err = strconv.ParseInt(text, 10, 64)
		v.SetInt(i)
	case v.CanUint():
		var u uint64
		u, err = strconv.ParseUint(text, 10, 64)
		v.SetUint(u)
	case v.CanFloat():
		var f float64
		f, err = strconv.ParseFloat(text, t.Bits()) // rounded once
		v.SetFloat(f)
	default:
		return b.fail(n, t.String())
	}
	if err != nil {
		return b.fail(n, err.Error())
	}
	return value{typ: t, get: func() reflect.Value { return v }}
}

func (b *builder) unary(n *wire.Node, want reflect.Type) value {
	x := b.expr(n.X[0], want)
	if n.Name == "<-" {
		if x.typ.Kind() != reflect.Chan {
			return b.fail(n, "no channel")
		}
		return value{typ: x.typ.Elem(), get: func() reflect.Value {
			v, _ := x.get().Recv()
			live.Check()
			return v
		}}
	}
	k := kindOfNumber(x.typ)
	if !(k != none && n.Name != "!" && (n.Name != "^" || k != float) || x.typ.Kind() == reflect.Bool && n.Name == "!") {
		return b.fail(n, x.typ.String())
	}
	return value{typ: x.typ, get: func() reflect.Value {
		v, to := x.get(), reflect.New(x.typ).Elem()
		switch {
		case n.Name == "!":
			to.SetBool(!v.Bool())
		case n.Name == "+":
			to.Set(v)
		case k == float:
			to.SetFloat(-v.Float())
		case n.Name == "-" && k == signed:
			to.SetInt(-v.Int())
		case n.Name == "-":
			to.SetUint(-v.Uint())
		case k == signed:
			to.SetInt(^v.Int())
		default:
			to.SetUint(^v.Uint())
		}
		return to
	}}
}

type numberKind int

const (
	none numberKind = iota
	signed
	unsigned
	float
)

func kindOfNumber(t reflect.Type) numberKind {
	v := reflect.Zero(t)
	switch {
	case v.CanInt():
		return signed
	case v.CanUint():
		return unsigned
	case v.CanFloat():
		return float
	}
	return none
}

func (b *builder) binary(n *wire.Node, want reflect.Type) value {
	comparison := false
	switch n.Name {
	case "==", "!=", "<", "<=", ">", ">=":
		comparison, want = true, nil
	case "<<", ">>":
		return b.shift(n, want)
	}
	x, y := b.operands(n.X[0], n.X[1], want)
	if b.err != nil {
		return b.fail(n, "")
	}
	if x.typ != y.typ {
		// Only an interface compares with another type.
		if x.typ.Kind() == reflect.Interface {
			y = b.as(y, x.typ, n)
		} else {
			x = b.as(x, y.typ, n)
		}
	}
	switch {
	case comparison:
		return b.compare(n, x, y)
	case n.Name == "&&" && x.typ.Kind() == reflect.Bool, n.Name == "||" && x.typ.Kind() == reflect.Bool:
		return value{typ: x.typ, get: func() reflect.Value {
			if v := x.get(); v.Bool() == (n.Name == "||") {
				return v
			}
			return y.get()
		}}
	}
	f := arithmetic(n.Name, x.typ)
	if f == nil {
		return b.fail(n, x.typ.String())
	}
	return value{typ: x.typ, get: func() reflect.Value {
		v, w, to := x.get(), y.get(), reflect.New(x.typ).Elem()
		f(to, v, w)
		return to
	}}
}

// operands are two of one type, which that of them has that can tell it.
func (b *builder) operands(x, y *wire.Node, want reflect.Type) (value, value) {
	untyped := func(n *wire.Node) bool { return n.Op == wire.Nil || n.Op == wire.Constant && n.Name == "" }
	if untyped(x) {
		w := b.expr(y, want)
		return b.expr(x, w.typ), w
	}
	v := b.expr(x, want)
	if untyped(y) {
		return v, b.expr(y, v.typ)
	}
	return v, b.expr(y, want)
}

// arithmetic is an operator for a type; nil if it has none. What is too large for the
// type is cut by the setters, as Go does.
func arithmetic(op string, t reflect.Type) func(to, x, y reflect.Value) {
	if t.Kind() == reflect.String && op == "+" {
		return func(to, x, y reflect.Value) { to.SetString(x.String() + y.String()) }
	}
	switch kindOfNumber(t) {
	case signed:
		if f := integers[int64](op); f != nil {
			return func(to, x, y reflect.Value) { to.SetInt(f(x.Int(), y.Int())) }
		}
	case unsigned:
		if f := integers[uint64](op); f != nil {
			return func(to, x, y reflect.Value) { to.SetUint(f(x.Uint(), y.Uint())) }
		}
	case float:
		var f func(a, b float64) float64
		switch op {
		case "+":
			f = func(a, b float64) float64 { return a + b }
		case "-":
			f = func(a, b float64) float64 { return a - b }
		case "*":
			f = func(a, b float64) float64 { return a * b }
		case "/":
			f = func(a, b float64) float64 { return a / b }
		default:
			return nil
		}
		return func(to, x, y reflect.Value) { to.SetFloat(f(x.Float(), y.Float())) }
	}
	return nil
}

func integers[T int64 | uint64](op string) func(a, b T) T {
	switch op {
	case "+":
		return func(a, b T) T { return a + b }
	case "-":
		return func(a, b T) T { return a - b }
	case "*":
		return func(a, b T) T { return a * b }
	case "/":
		return func(a, b T) T { return a / b }
	case "%":
		return func(a, b T) T { return a % b }
	case "&":
		return func(a, b T) T { return a & b }
	case "|":
		return func(a, b T) T { return a | b }
	case "^":
		return func(a, b T) T { return a ^ b }
	case "&^":
		return func(a, b T) T { return a &^ b }
	}
	return nil
}

func (b *builder) shift(n *wire.Node, want reflect.Type) value {
	x, y := b.expr(n.X[0], want), b.expr(n.X[1], reflect.TypeFor[uint]())
	left := n.Name == "<<"
	k, by := kindOfNumber(x.typ), kindOfNumber(y.typ)
	if k != signed && k != unsigned || by != signed && by != unsigned {
		return b.fail(n, x.typ.String())
	}
	return value{typ: x.typ, get: func() reflect.Value {
		v, w, to := x.get(), y.get(), reflect.New(x.typ).Elem()
		var count uint64
		if by == unsigned {
			count = w.Uint()
		} else if count = uint64(w.Int()); w.Int() < 0 {
			needed(1 << w.Int()) // panics as any shift does
		}
		switch {
		case k == signed && left:
			to.SetInt(v.Int() << count)
		case k == signed:
			to.SetInt(v.Int() >> count)
		case left:
			to.SetUint(v.Uint() << count)
		default:
			to.SetUint(v.Uint() >> count)
		}
		return to
	}}
}

// compare is a comparison of two values of one type.
func (b *builder) compare(n *wire.Node, x, y value) value {
	var test func(v, w reflect.Value) bool
	equal := n.Name == "==" || n.Name == "!="
	switch k := kindOfNumber(x.typ); {
	case n.X[0].Op == wire.Nil && equal:
		test = func(_, w reflect.Value) bool { return w.IsNil() }
	case n.X[1].Op == wire.Nil && equal:
		test = func(v, _ reflect.Value) bool { return v.IsNil() }
	case equal && x.typ.Comparable():
		test = func(v, w reflect.Value) bool { return v.Interface() == w.Interface() }
	case x.typ.Kind() == reflect.String:
		test = ordered(n.Name, reflect.Value.String)
	case k == signed:
		test = ordered(n.Name, reflect.Value.Int)
	case k == unsigned:
		test = ordered(n.Name, reflect.Value.Uint)
	case k == float:
		test = ordered(n.Name, reflect.Value.Float)
	}
	if test == nil {
		return b.fail(n, x.typ.String())
	}
	return value{typ: basics["bool"], get: func() reflect.Value {
		v, w := x.get(), y.get()
		return reflect.ValueOf(test(v, w) != (n.Name == "!="))
	}}
}

func ordered[T int64 | uint64 | float64 | string](op string, of func(reflect.Value) T) func(v, w reflect.Value) bool {
	switch op {
	case "<":
		return func(v, w reflect.Value) bool { return of(v) < of(w) }
	case "<=":
		return func(v, w reflect.Value) bool { return of(v) <= of(w) }
	case ">":
		return func(v, w reflect.Value) bool { return of(v) > of(w) }
	case ">=":
		return func(v, w reflect.Value) bool { return of(v) >= of(w) }
	}
	return nil
}

func (b *builder) convert(n *wire.Node) value {
	x, t := b.expr(n.X[0], nil), basics[n.Name]
	if t == nil || !x.typ.ConvertibleTo(t) {
		return b.fail(n, x.typ.String())
	}
	return value{typ: t, get: func() reflect.Value { return x.get().Convert(t) }}
}

func (b *builder) length(n *wire.Node) value {
	x := b.expr(n.X[0], nil)
	if x.typ.Kind() == reflect.Pointer {
		x = b.deref(x, n)
	}
	switch k := x.typ.Kind(); {
	case k == reflect.Slice, k == reflect.Array, k == reflect.Chan:
	case k == reflect.Map || k == reflect.String:
		if n.Op == wire.Length {
			break
		}
		fallthrough
	default:
		return b.fail(n, x.typ.String())
	}
	return value{typ: basics["int"], get: func() reflect.Value {
		if n.Op == wire.Length {
			return reflect.ValueOf(x.get().Len())
		}
		return reflect.ValueOf(x.get().Cap())
	}}
}

func (b *builder) index(n *wire.Node) value {
	x := b.expr(n.X[0], nil)
	if x.typ.Kind() == reflect.Pointer {
		x = b.deref(x, n)
	}
	if x.typ.Kind() == reflect.Map {
		key := b.as(b.expr(n.X[1], x.typ.Key()), x.typ.Key(), n)
		return value{typ: x.typ.Elem(), get: func() reflect.Value {
			m, k := x.get(), key.get()
			if v := m.MapIndex(k); v.IsValid() {
				return v
			}
			return reflect.Zero(x.typ.Elem())
		}}
	}
	at := b.expr(n.X[1], basics["int"])
	by := kindOfNumber(at.typ)
	t := basics["byte"]
	switch x.typ.Kind() {
	case reflect.Slice, reflect.Array:
		t = x.typ.Elem()
	case reflect.String:
	default:
		return b.fail(n, x.typ.String())
	}
	if by != signed && by != unsigned {
		return b.fail(n, at.typ.String())
	}
	return value{typ: t, get: func() reflect.Value {
		v, i := x.get(), at.get()
		// What is out of range panics here, in the runtime's words.
		within := make([]struct{}, v.Len())
		if by == signed {
			needed(within[i.Int()])
			return v.Index(int(i.Int()))
		}
		needed(within[i.Uint()])
		return v.Index(int(i.Uint()))
	}}
}

// needed keeps the compiler from leaving out what is there to panic.
//
//go:noinline
func needed[T any](T) {}

// nilDereference panics as the use of a nil pointer does.
func nilDereference() { needed(*nobody) }

// nobody is nil.
var nobody *int
