package host

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/cellard/cellard/kernels/golang/live"
	"github.com/cellard/cellard/kernels/golang/wire"
)

// objects has what each loaded cell has registered.
var (
	objectsMu sync.Mutex
	objects   = map[int][]any{}
)

// Keep notes what the cell that was loaded last has registered, for programs.
func Keep(cell int) {
	objectsMu.Lock()
	objects[cell] = live.Objects
	objectsMu.Unlock()
	live.Objects = nil
}

// Prepare makes a program the cell that Run runs next. Nothing of it is evaluated yet:
// the error tells that it can't be, in whole or in part, and the cell is to be compiled.
func (c *Cell) Prepare(p *wire.Program) (err error) {
	defer func() {
		if r := recover(); r != nil { // of package reflect
			err = fmt.Errorf("%v", r)
		}
	}()
	b := &builder{c: c}
	c.program = p.Cell
	steps := make([]func(), len(p.Body))
	for i, s := range p.Body {
		if s.To != nil {
			set := b.assignment(s)
			steps[i] = func() {
				c.line = s.Line
				set()
			}
			continue
		}
		x := b.values(s.Value, nil)
		steps[i] = func() {
			c.line = s.Line
			show(x.all(), s.Show)
		}
	}
	if b.err != nil {
		return b.err
	}
	live.Run, live.Done = func() {
		for _, step := range steps {
			step()
			live.Check()
		}
	}, nil
	return nil
}

// show hands values on as a compiled cell does.
func show(values []reflect.Value, by string) {
	if by == "" {
		return
	}
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v.Interface()
	}
	switch by {
	case "ShowAll":
		live.ShowAll(out...)
	case "ShowError":
		live.It.Show(out, live.Error)
	default:
		live.Show(out[0])
	}
}

// value is an expression that is ready to be evaluated.
type value struct {
	typ reflect.Type // nil for a call that has no value, or several
	get func() reflect.Value
	// many is there for a call that has not one value.
	many func() []reflect.Value
}

func (v value) all() []reflect.Value {
	if v.many != nil {
		return v.many()
	}
	return []reflect.Value{v.get()}
}

// builder makes values of nodes. What it doesn't know leaves an error.
type builder struct {
	c   *Cell
	err error
}

func (b *builder) fail(n *wire.Node, why string) value {
	if b.err == nil {
		b.err = fmt.Errorf("%s %s: %s", n.Op, n.Name, why)
	}
	var none reflect.Value
	return value{typ: reflect.TypeFor[int](), get: func() reflect.Value { return none }}
}

// expr is a node that has one value. want, if not nil, is the type of its place, by
// which constants and nil without a type go.
func (b *builder) expr(n *wire.Node, want reflect.Type) value {
	v := b.values(n, want)
	if v.typ == nil {
		return b.fail(n, "not one value")
	}
	return v
}

func (b *builder) values(n *wire.Node, want reflect.Type) value {
	if b.err != nil {
		return b.fail(n, "")
	}
	switch n.Op {
	case wire.Constant:
		return b.constant(n, want)
	case wire.Nil:
		if want == nil {
			return b.fail(n, "no type")
		}
		zero := reflect.Zero(want)
		return value{typ: want, get: func() reflect.Value { return zero }}
	case wire.Variable:
		return b.variable(n)
	case wire.Function:
		f := reflect.ValueOf(b.object(n))
		if f.Kind() != reflect.Func {
			return b.fail(n, "no function")
		}
		return value{typ: f.Type(), get: func() reflect.Value { return f }}
	case wire.Live:
		f, ok := twins[n.Name]
		if !ok {
			return b.fail(n, "not known")
		}
		v := reflect.ValueOf(f)
		return value{typ: v.Type(), get: func() reflect.Value { return v }}
	case wire.Call:
		return b.call(n)
	case wire.Field:
		return b.field(n)
	case wire.Method:
		return b.method(n)
	case wire.Index:
		return b.index(n)
	case wire.Deref:
		return b.deref(b.expr(n.X[0], nil), n)
	case wire.Address:
		x := b.expr(n.X[0], nil)
		if !addressable(n.X[0]) {
			return b.fail(n, "no variable")
		}
		return value{typ: reflect.PointerTo(x.typ), get: func() reflect.Value { return x.get().Addr() }}
	case wire.Unary:
		return b.unary(n, want)
	case wire.Binary:
		return b.binary(n, want)
	case wire.Convert:
		return b.convert(n)
	case wire.Length, wire.Capacity:
		return b.length(n)
	}
	return b.fail(n, "not known")
}

var twins = map[string]any{
	"Print": live.Print, "Printf": live.Printf, "Println": live.Println,
	"Sprint": live.Sprint, "Sprintf": live.Sprintf, "Sprintln": live.Sprintln,
	"Display": live.Display,
}

func (b *builder) object(n *wire.Node) any {
	objectsMu.Lock()
	defer objectsMu.Unlock()
	if all := objects[n.Cell]; n.Index < len(all) {
		return all[n.Index]
	}
	return nil
}

func (b *builder) variable(n *wire.Node) value {
	p := reflect.ValueOf(b.object(n))
	if p.Kind() != reflect.Pointer {
		return b.fail(n, "no variable")
	}
	v := p.Elem()
	return value{typ: v.Type(), get: func() reflect.Value { return v }}
}

// addressable tells what & can be put before, and a method with a pointer as its
// receiver be called of.
func addressable(n *wire.Node) bool {
	switch n.Op {
	case wire.Variable, wire.Deref:
		return true
	case wire.Field, wire.Index:
		return true // the checker knows the rest: what isn't can't come here
	}
	return false
}

// as makes a value one of the type of the place that it is assigned to.
func (b *builder) as(v value, want reflect.Type, n *wire.Node) value {
	switch {
	case v.typ == want:
		return v
	case want.Kind() == reflect.Interface && v.typ.Implements(want):
		return value{typ: want, get: func() reflect.Value {
			to := reflect.New(want).Elem()
			to.Set(v.get())
			return to
		}}
	case v.typ.AssignableTo(want):
		return value{typ: want, get: func() reflect.Value { return v.get().Convert(want) }}
	}
	return b.fail(n, fmt.Sprintf("a %s as %s", v.typ, want))
}

// call is a call of a function, or of a method's value.
func (b *builder) call(n *wire.Node) value {
	f := b.expr(n.X[0], nil)
	if f.typ.Kind() != reflect.Func {
		return b.fail(n, "no function")
	}
	t, args, fixed := f.typ, n.X[1:], f.typ.NumIn()
	if t.IsVariadic() {
		fixed--
	}
	if len(args) < fixed || !t.IsVariadic() && (len(args) > fixed || n.Spread) || n.Spread && len(args) != fixed+1 {
		return b.fail(n, "other arguments")
	}
	// All arguments are come to before one is converted: what stands for a variable is
	// read after the calls beside it.
	in := make([]argument, len(args))
	for i, a := range args {
		to := t.In(min(i, t.NumIn()-1))
		if t.IsVariadic() && i >= fixed && !n.Spread {
			to = to.Elem()
		}
		in[i] = b.argument(a, to)
	}
	run := func() []reflect.Value {
		fun := f.get()
		for i := range in {
			*in[i].come = in[i].raw.get()
		}
		values := make([]reflect.Value, 0, len(in))
		for _, a := range in[:fixed] {
			values = append(values, a.value.get())
		}
		if fun.IsNil() {
			nilDereference()
		}
		live.Check()
		var out []reflect.Value
		if t.IsVariadic() {
			out = fun.CallSlice(append(values, variadic(in[fixed:], t.In(fixed), n.Spread)))
		} else {
			out = fun.Call(values)
		}
		live.Check()
		return out
	}
	if t.NumOut() == 1 {
		return value{typ: t.Out(0), get: func() reflect.Value { return run()[0] }}
	}
	return value{many: run}
}

// argument is an argument of a call: raw as it stands there, and, once come has that,
// value of its parameter's type.
type argument struct {
	raw, value value
	come       *reflect.Value
}

func (b *builder) argument(n *wire.Node, to reflect.Type) argument {
	a := argument{raw: b.expr(n, to), come: new(reflect.Value)}
	a.value = b.as(value{typ: a.raw.typ, get: func() reflect.Value { return *a.come }}, to, n)
	return a
}

// variadic is the last argument of a variadic function: nil where there is nothing in it.
func variadic(in []argument, t reflect.Type, spread bool) reflect.Value {
	switch {
	case spread:
		return in[0].value.get()
	case len(in) == 0:
		return reflect.Zero(t)
	}
	all := reflect.MakeSlice(t, len(in), len(in))
	for i, a := range in {
		all.Index(i).Set(a.value.get())
	}
	return all
}

// field goes a way through fields and the pointers between them.
func (b *builder) field(n *wire.Node) value {
	v := b.expr(n.X[0], nil)
	for _, i := range n.Path {
		if v.typ.Kind() == reflect.Pointer {
			v = b.deref(v, n)
		}
		if v.typ.Kind() != reflect.Struct || i >= v.typ.NumField() {
			return b.fail(n, "no field")
		}
		if !v.typ.Field(i).IsExported() { // of what is embedded reflection lets nothing be called
			return b.fail(n, "not exported")
		}
		x := v
		v = value{typ: x.typ.Field(i).Type, get: func() reflect.Value { return x.get().Field(i) }}
	}
	return v
}

func (b *builder) deref(v value, n *wire.Node) value {
	if v.typ.Kind() != reflect.Pointer {
		return b.fail(n, "no pointer")
	}
	return value{typ: v.typ.Elem(), get: func() reflect.Value {
		p := v.get()
		if p.IsNil() {
			nilDereference()
		}
		return p.Elem()
	}}
}

// method is a method of a value, to be called.
func (b *builder) method(n *wire.Node) value {
	v := b.expr(n.X[0], nil)
	switch {
	case v.typ.Kind() == reflect.Interface:
	case v.typ.Kind() == reflect.Pointer && !n.Pointer:
		v = b.deref(v, n)
	case v.typ.Kind() != reflect.Pointer && n.Pointer:
		x := v
		if !addressable(n.X[0]) {
			return b.fail(n, "no variable")
		}
		v = value{typ: reflect.PointerTo(x.typ), get: func() reflect.Value { return x.get().Addr() }}
	}
	m, ok := v.typ.MethodByName(n.Name)
	if !ok {
		return b.fail(n, "no method")
	}
	t := m.Type // with the receiver as its first parameter, but of an interface
	if v.typ.Kind() != reflect.Interface {
		t = reflect.Zero(v.typ).Method(m.Index).Type()
	}
	return value{typ: t, get: func() reflect.Value {
		x := v.get()
		if x.Kind() == reflect.Interface && x.IsNil() {
			nilDereference()
		}
		return x.Method(m.Index)
	}}
}
