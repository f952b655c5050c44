package compiler

import (
	"fmt"
	"go/ast"
	"go/types"
	"strings"
)

// inferred declares a variable whose type has no name here, by a generic function that
// gives the zero value of a type: of a function's result, or of a variable that is there.
// Neither is called or needed for that. The error is that of naming the type.
func (e *emitter) inferred(h hoisted, name string, failed error) (string, error) {
	for _, spec := range h.decl.Specs {
		s := spec.(*ast.ValueSpec)
		for i, id := range s.Names {
			if id.Name != name {
				continue
			}
			var value ast.Expr
			switch {
			case len(s.Values) == len(s.Names):
				value, i = s.Values[i], 0
			case len(s.Values) == 1:
				value = s.Values[0]
			default:
				return "", failed
			}
			param, arg, ok := e.like(ast.Unparen(value), i)
			if !ok {
				return "", failed
			}
			e.inferences++
			helper := fmt.Sprintf("%sT%d", own, e.inferences)
			return fmt.Sprintf("func %s[%sT any](%s)(z %sT){return}\nvar %s = %s(%s)\n",
				helper, own, param, own, exported(name), helper, arg), nil
		}
	}
	return "", failed
}

// like gives the parameter of a generic function by which its type parameter is the type
// of a value, or of a call's i-th result, and an argument that is evaluated without any
// effect.
func (e *emitter) like(value ast.Expr, i int) (param, arg string, ok bool) {
	switch x := value.(type) {
	case *ast.Ident:
		if v, isVar := e.info.Uses[x].(*types.Var); isVar && v.Parent() == v.Pkg().Scope() {
			arg, ok = e.qualified(v)
		}
		return own + "T", arg, ok
	case *ast.SelectorExpr:
		if v, isVar := e.info.Uses[x.Sel].(*types.Var); isVar && !v.IsField() {
			arg, ok = e.qualified(v)
		}
		return own + "T", arg, ok
	case *ast.CallExpr:
		f := e.callee(x)
		if f == nil {
			return "", "", false
		}
		sig, isFunc := f.Type().(*types.Signature)
		if !isFunc || sig.TypeParams().Len() > 0 {
			return "", "", false
		}
		var first []string // a method's receiver
		if sig.Recv() == nil {
			arg, ok = e.qualified(f)
		} else if s := e.selection(x); s != nil {
			recv, err := e.typeText(s.Recv(), false)
			method, named := e.memberName(f, f.Name())
			first, arg, ok = []string{recv}, "("+recv+")."+method, err == nil && named
		}
		if !ok {
			return "", "", false
		}
		param, ok = e.shape(sig, first, i)
		return param, arg, ok
	}
	return "", "", false
}

// selection is the method that a call names.
func (e *emitter) selection(call *ast.CallExpr) *types.Selection {
	if x, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		if s := e.info.Selections[x]; s != nil && s.Kind() == types.MethodVal {
			return s
		}
	}
	return nil
}

// shape is a function's type in which the i-th result is the type parameter; false where
// another of its types has no name either.
func (e *emitter) shape(sig *types.Signature, params []string, i int) (string, bool) {
	for n := 0; n < sig.Params().Len(); n++ {
		t, dots := sig.Params().At(n).Type(), ""
		if s, ok := t.(*types.Slice); ok && sig.Variadic() && n == sig.Params().Len()-1 {
			t, dots = s.Elem(), "..."
		}
		text, err := e.typeText(t, false)
		if err != nil {
			return "", false
		}
		params = append(params, dots+text)
	}
	var results []string
	for n := 0; n < sig.Results().Len(); n++ {
		text := own + "T"
		if n != i {
			var err error
			if text, err = e.typeText(sig.Results().At(n).Type(), false); err != nil {
				return "", false
			}
		}
		results = append(results, text)
	}
	return "func(" + strings.Join(params, ",") + ")(" + strings.Join(results, ",") + ")", true
}
