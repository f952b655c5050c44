package host

import (
	"reflect"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// assignment sets a variable, what a pointer leads to, or an element. The value comes
// first: of what can fail in both, Go fails in that first.
func (b *builder) assignment(s wire.Step) (set func()) {
	to := b.expr(s.To, nil)
	var v value
	if s.By == "" {
		v = b.as(b.expr(s.Value, to.typ), to.typ, s.Value)
	} else {
		v = b.binary(&wire.Node{Op: wire.Binary, Name: s.By, X: []*wire.Node{s.To, s.Value}}, to.typ)
		if v.typ != to.typ {
			b.fail(s.To, "another type")
		}
	}
	if s.To.Op == wire.Index {
		if in := b.expr(s.To.X[0], nil); in.typ.Kind() == reflect.Map {
			key := b.as(b.expr(s.To.X[1], in.typ.Key()), in.typ.Key(), s.To)
			return func() {
				x := v.get()
				in.get().SetMapIndex(key.get(), x)
			}
		}
	}
	return func() {
		// A copy: the place may be part of the value.
		x := reflect.New(to.typ).Elem()
		x.Set(v.get())
		to.get().Set(x)
	}
}
