package compiler

import (
	"fmt"
	"go/types"
	"maps"
	"strconv"
	"strings"
)

// unnameableError tells that a type can't be written down in another package.
type unnameableError struct{ t types.Type }

func (e *unnameableError) Error() string {
	return fmt.Sprintf("the type %s has no name that a variable at the top of a cell can be given", e.t)
}

// maxTypeDepth bounds the printer's recursion.
const maxTypeDepth = 100

// typeText writes types as the emitted package of a cell names them.
type typeText struct {
	e     *emitter
	b     strings.Builder
	err   error
	depth int
	// local allows type parameters and types of functions' own: the text is for a place
	// where they are in scope.
	local bool
}

func (e *emitter) typeText(t types.Type, local bool) (string, error) {
	before := maps.Clone(e.imported)
	w := &typeText{e: e, local: local}
	if w.write(t); w.err != nil {
		e.imported = before // what isn't written needs no import
		return "", w.err
	}
	return w.b.String(), nil
}

func (w *typeText) fail(t types.Type) {
	if w.err == nil {
		w.err = &unnameableError{t}
	}
}

func (w *typeText) str(s string) { w.b.WriteString(s) }

func (w *typeText) write(t types.Type) {
	if w.depth++; w.depth > maxTypeDepth {
		w.fail(t)
	}
	defer func() { w.depth-- }()
	if w.err != nil {
		return
	}
	switch t := t.(type) {
	case *types.Basic:
		if t.Kind() == types.UnsafePointer {
			w.str(w.e.importName("unsafe") + ".Pointer")
			return
		}
		if t.Info()&types.IsUntyped != 0 || t.Kind() == types.Invalid {
			w.fail(t)
		}
		w.str(t.Name())
	case *types.Pointer:
		w.str("*")
		w.write(t.Elem())
	case *types.Slice:
		w.str("[]")
		w.write(t.Elem())
	case *types.Array:
		w.str("[" + strconv.FormatInt(t.Len(), 10) + "]")
		w.write(t.Elem())
	case *types.Map:
		w.str("map[")
		w.write(t.Key())
		w.str("]")
		w.write(t.Elem())
	case *types.Chan:
		w.str(map[types.ChanDir]string{types.SendRecv: "chan ", types.SendOnly: "chan<- ", types.RecvOnly: "<-chan "}[t.Dir()])
		w.str("(")
		w.write(t.Elem())
		w.str(")")
	case *types.Signature:
		w.str("func")
		w.signature(t)
	case *types.Struct:
		w.structure(t)
	case *types.Interface:
		w.iface(t)
	case *types.Union:
		for i := 0; i < t.Len(); i++ {
			if i > 0 {
				w.str("|")
			}
			if t.Term(i).Tilde() {
				w.str("~")
			}
			w.write(t.Term(i).Type())
		}
	case *types.TypeParam:
		if !w.local {
			w.fail(t)
		}
		w.str(t.Obj().Name())
	case *types.Named:
		w.named(t.Obj(), t.TypeArgs(), t)
	case *types.Alias:
		before := w.b.Len()
		if w.named(t.Obj(), aliasArgs(t), t); w.err != nil {
			// An alias that can't be named stands for a type that perhaps can.
			text := w.b.String()[:before]
			w.err = nil
			w.b.Reset()
			w.str(text)
			w.write(types.Unalias(t))
		}
	default:
		w.fail(t)
	}
}

func (w *typeText) named(o *types.TypeName, args *types.TypeList, t types.Type) {
	switch {
	case o.Pkg() == nil: // error, comparable, any
		w.str(o.Name())
	case o.Parent() != o.Pkg().Scope():
		if !w.local {
			w.fail(t)
		}
		w.str(o.Name())
	default:
		text, ok := w.e.qualified(o)
		if !ok {
			w.fail(t)
		}
		w.str(text)
	}
	if args.Len() > 0 {
		w.str("[")
		for i := 0; i < args.Len(); i++ {
			if i > 0 {
				w.str(",")
			}
			w.write(args.At(i))
		}
		w.str("]")
	}
}

func (w *typeText) signature(t *types.Signature) {
	w.str("(")
	for i := 0; i < t.Params().Len(); i++ {
		if i > 0 {
			w.str(",")
		}
		p := t.Params().At(i).Type()
		if s, ok := p.(*types.Slice); ok && t.Variadic() && i == t.Params().Len()-1 {
			w.str("...")
			p = s.Elem()
		}
		w.write(p)
	}
	w.str(")")
	if n := t.Results().Len(); n > 0 {
		w.str("(")
		for i := 0; i < n; i++ {
			if i > 0 {
				w.str(",")
			}
			w.write(t.Results().At(i).Type())
		}
		w.str(")")
	}
}

func (w *typeText) structure(t *types.Struct) {
	w.str("struct{")
	for i := 0; i < t.NumFields(); i++ {
		f := t.Field(i)
		name, ok := w.e.memberName(f, f.Name())
		if !ok {
			w.fail(t)
		}
		switch b, basic := f.Type().(*types.Basic); {
		case f.Embedded() && basic:
			w.str(w.e.basicAlias(b.Name()))
		case f.Embedded():
			w.write(f.Type())
		default:
			w.str(name + " ")
			w.write(f.Type())
		}
		tag := t.Tag(i)
		if tag == "" && w.e.hidden(f) {
			tag = hiddenTag
		}
		if tag != "" {
			w.str(" " + strconv.Quote(tag))
		}
		w.str(";")
	}
	w.str("}")
}

func (w *typeText) iface(t *types.Interface) {
	w.str("interface{")
	for i := 0; i < t.NumExplicitMethods(); i++ {
		m := t.ExplicitMethod(i)
		name, ok := w.e.memberName(m, m.Name())
		if !ok {
			w.fail(t)
		}
		w.str(name)
		w.signature(m.Type().(*types.Signature))
		w.str(";")
	}
	for i := 0; i < t.NumEmbeddeds(); i++ {
		w.write(t.EmbeddedType(i))
		w.str(";")
	}
	w.str("}")
}
