package compiler

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
)

// fewBytes is what is made without a look at how much memory there is.
const fewBytes = 64 << 20

// room puts Room around the size of a slice or channel that is made: one that is larger
// than the machine's memory would take the process, and all values with it. A size of
// another type than int, or whose text is edited at its ends, is left as it is.
func (e *emitter) room(n *ast.CallExpr) {
	if len(n.Args) < 2 {
		return
	}
	var elem types.Type
	switch t := e.info.TypeOf(n.Args[0]).Underlying().(type) {
	case *types.Slice:
		elem = t.Elem()
	case *types.Chan:
		elem = t.Elem()
	default:
		return
	}
	arg := n.Args[len(n.Args)-1]
	size, ok := e.sizeOf(elem)
	if !ok || size == 0 || !e.isPlainInt(arg) {
		return
	}
	if v := e.info.Types[arg].Value; v != nil {
		count, exact := constant.Int64Val(constant.ToInt(v))
		if !exact || count <= fewBytes/size {
			return
		}
	}
	if from, to, ok := e.span(arg); ok {
		e.insert(from, e.importName(RuntimePath)+".Room(")
		e.insert(to, fmt.Sprintf(",%d)", size))
	}
}

// sizeOf is a type's size in bytes; false where it isn't known.
func (e *emitter) sizeOf(t types.Type) (size int64, ok bool) {
	defer func() {
		if recover() != nil { // it holds a type parameter
			ok = false
		}
	}()
	size = types.SizesFor("gc", targetArch).Sizeof(t)
	return size, size >= 0
}

// isPlainInt tells an int, or a constant that becomes one.
func (e *emitter) isPlainInt(x ast.Expr) bool {
	t, ok := types.Unalias(e.info.TypeOf(x)).(*types.Basic)
	if !ok || t.Kind() != types.Int && t.Info()&types.IsUntyped == 0 {
		return false
	}
	plain := true
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			plain = false
		case *ast.Ident:
			if b, ok := e.info.Uses[n].(*types.Builtin); ok && (b.Name() == "recover" || b.Name() == "make") {
				plain = false
			}
		}
		return plain
	})
	return plain
}
