package compiler

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// walk writes the names of a node, and puts in what lets a cell be stopped: a check in
// each loop, function literal, function that calls others, and behind what can block.
func (e *emitter) walk(root ast.Node) {
	var stack []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if e.skip[n] {
			return false
		}
		var parent ast.Node
		if len(stack) > 0 {
			parent = stack[len(stack)-1]
		}
		stack = append(stack, n)
		switch n := n.(type) {
		case *ast.Ident:
			e.ident(n)
			e.use(n, stack)
		case *ast.SelectorExpr:
			if e.selector(n, parent) {
				stack = stack[:len(stack)-1]
				return false
			}
		case *ast.ForStmt:
			e.enter(n.Body, ".Check();")
		case *ast.RangeStmt:
			e.enter(n.Body, ".Check();")
		case *ast.FuncLit:
			if g, ok := parent.(*ast.CallExpr); ok && g.Fun == n && isGo(stack) {
				e.enter(n.Body, ".Guard();")
				e.enter(n.Body, ".Enter();")
			} else {
				e.enter(n.Body, ".Enter();")
			}
		case *ast.FuncDecl:
			if n.Body != nil && e.callsBack(n.Body) {
				e.enter(n.Body, ".Enter();")
			}
		case *ast.GoStmt:
			e.goStatement(n, stack)
		case *ast.CallExpr:
			e.call(n)
		case *ast.BranchStmt:
			if from, _, ok := e.span(n); ok && n.Tok == token.GOTO {
				e.insert(from, e.importName(RuntimePath)+".Check();")
			}
		case *ast.Field:
			e.field(n)
		case *ast.CommClause:
			if off, ok := e.offset(n.Colon); ok {
				e.insert(off+1, e.importName(RuntimePath)+".Check();")
			}
		case *ast.BlockStmt:
			e.after(n.List)
		case *ast.CaseClause:
			e.after(n.Body)
		}
		if c, ok := n.(*ast.CommClause); ok {
			e.after(c.Body)
		}
		return true
	})
	if s, ok := root.(ast.Stmt); ok && !e.isHoisted(s) {
		e.after([]ast.Stmt{s})
	}
}

func (e *emitter) isHoisted(s ast.Stmt) bool {
	if n := len(e.body); n > 0 && e.body[n-1] == s {
		return true // nothing stands behind the last
	}
	for _, h := range e.tops {
		if h.stmt == s || h.assign != nil && ast.Stmt(h.assign) == s {
			return true
		}
	}
	return false
}

// enter puts a call at the begin of a block. What is put in last stands last.
func (e *emitter) enter(b *ast.BlockStmt, call string) {
	off, ok := e.offset(b.Lbrace)
	if !ok {
		return
	}
	text := e.importName(RuntimePath) + call
	if call == ".Guard();" {
		text = "defer " + strings.TrimSuffix(text, ");") + e.importName(RuntimePath) + ".Began());"
	}
	e.insert(off+1, text)
}

func isGo(stack []ast.Node) bool {
	if len(stack) < 3 {
		return false
	}
	_, ok := stack[len(stack)-3].(*ast.GoStmt)
	return ok
}

// after puts a check behind each statement that can block or run somebody else's code,
// so that a cell that was stopped meanwhile does nothing more.
func (e *emitter) after(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.AssignStmt, *ast.SendStmt, *ast.DeclStmt:
			if _, to, ok := e.span(s); ok && e.waits(s) {
				e.insert(to, ";"+e.importName(RuntimePath)+".Check()")
			}
		}
	}
}

// waits tells whether a statement has a channel's operation or a call of what isn't
// a cell's function, outside of function literals.
func (e *emitter) waits(n ast.Node) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.SendStmt:
			found = true
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		case *ast.CallExpr:
			t := e.info.Types[n.Fun]
			switch {
			case t.IsType():
			case t.IsBuiltin():
				if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "panic" {
					return false
				}
			default:
				f := e.callee(n)
				found = found || f == nil || !e.mine(f.Pkg())
			}
		}
		return !found
	})
	return found && !isPanic(n)
}

// isPanic tells the statement after which nothing can stand: a function may end by it.
func isPanic(n ast.Node) bool {
	s, ok := n.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := s.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := call.Fun.(*ast.Ident)
	return ok && id.Name == "panic"
}

// callee is the function that a call names; nil for a value or a method of an interface.
func (e *emitter) callee(call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	switch x := fun.(type) {
	case *ast.IndexExpr:
		fun = x.X
	case *ast.IndexListExpr:
		fun = x.X
	}
	var id *ast.Ident
	switch x := fun.(type) {
	case *ast.Ident:
		id = x
	case *ast.SelectorExpr:
		id = x.Sel
		if s := e.info.Selections[x]; s != nil && types.IsInterface(s.Recv()) {
			return nil
		}
	default:
		return nil
	}
	f, _ := e.info.Uses[id].(*types.Func)
	return f
}

// callsBack tells whether a function can call itself, at least by way of others: also of
// a library's, as a String method that prints its own receiver does.
func (e *emitter) callsBack(body *ast.BlockStmt) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			t := e.info.Types[call.Fun]
			found = found || !t.IsType() && !t.IsBuiltin()
		}
		return !found
	})
	return found
}

// call puts Recovered around recover(), so that no cell recovers from its own stop, and
// Room around the size of what is made.
func (e *emitter) call(n *ast.CallExpr) {
	id, ok := ast.Unparen(n.Fun).(*ast.Ident)
	if !ok {
		return
	}
	b, ok := e.info.Uses[id].(*types.Builtin)
	if !ok {
		return
	}
	switch b.Name() {
	case "recover":
		if from, to, ok := e.span(n); ok {
			e.insert(from, e.importName(RuntimePath)+".Recovered(")
			e.insert(to, ")")
		}
	case "make":
		e.room(n)
	}
}

// field hides a field that the user wrote in lower case from encoders.
func (e *emitter) field(f *ast.Field) {
	if f.Tag != nil || len(f.Names) == 0 {
		return
	}
	for _, id := range f.Names {
		v, ok := e.info.Defs[id].(*types.Var)
		if !ok || !v.IsField() || !e.hidden(v) {
			return
		}
	}
	if _, to, ok := e.span(f.Type); ok {
		e.insert(to, " `"+hiddenTag+"`")
	}
}

// goStatement lets a goroutine catch its panic. A literal's body does; another function
// is called by a literal that is given it and its arguments, so that they are still
// evaluated at the go statement.
func (e *emitter) goStatement(g *ast.GoStmt, stack []ast.Node) {
	call := g.Call
	if _, ok := call.Fun.(*ast.FuncLit); ok {
		return
	}
	t := e.info.Types[call.Fun]
	if t.IsType() || t.IsBuiltin() {
		return
	}
	if t.Type == nil {
		return
	}
	sig, ok := t.Type.Underlying().(*types.Signature)
	if !ok || len(call.Args) == 1 && isTuple(e.info.Types[call.Args[0]].Type) {
		return
	}
	var params, args []string
	text, err := e.typeText(sig, true)
	if err != nil {
		return
	}
	params = append(params, own+"F "+text)
	for i := 0; i < sig.Params().Len(); i++ {
		p := sig.Params().At(i).Type()
		name, dots := fmt.Sprintf("%sA%d", own, i), ""
		if s, ok := p.(*types.Slice); ok && sig.Variadic() && i == sig.Params().Len()-1 {
			p, dots = s.Elem(), "..."
		}
		text, err := e.typeText(p, true)
		if err != nil {
			return
		}
		params = append(params, name+" "+dots+text)
		args = append(args, name+dots)
	}
	from, _, ok1 := e.span(call.Fun)
	lparen, ok2 := e.offset(call.Lparen)
	if !ok1 || !ok2 {
		return
	}
	r := e.importName(RuntimePath)
	e.insert(from, fmt.Sprintf("func(%s){defer %s.Guard(%s.Began());%sF(%s)}(", strings.Join(params, ","), r, r, own, strings.Join(args, ",")))
	comma := ""
	if len(call.Args) > 0 {
		comma = ","
	}
	e.replace(lparen, lparen+1, comma)
}

func isTuple(t types.Type) bool {
	_, ok := t.(*types.Tuple)
	return ok
}

// use reads a local variable that nothing else reads: the compiler refuses it else.
func (e *emitter) use(id *ast.Ident, stack []ast.Node) {
	if !e.unused[id.Pos()] {
		return
	}
	text := "_=" + id.Name
	for i := len(stack) - 2; i >= 0; i-- {
		var in ast.Node = stack[i]
		var parent ast.Node
		if i > 0 {
			parent = stack[i-1]
		}
		switch s := in.(type) {
		case *ast.RangeStmt:
			e.enterText(s.Body.Lbrace, text)
			return
		case *ast.AssignStmt, *ast.DeclStmt:
			switch p := parent.(type) {
			case *ast.IfStmt:
				if ast.Node(p.Init) == in {
					e.enterText(p.Body.Lbrace, text)
					return
				}
			case *ast.ForStmt:
				e.enterText(p.Body.Lbrace, text)
				return
			case *ast.SwitchStmt:
				e.firstClause(p.Body, text)
				return
			case *ast.TypeSwitchStmt:
				if ast.Node(p.Assign) == in {
					if from, ok := e.offset(id.Pos()); ok {
						if a, ok := in.(*ast.AssignStmt); ok {
							to, _ := e.offset(a.Rhs[0].Pos())
							e.replace(from, to, "")
						}
					}
					return
				}
				e.firstClause(p.Body, text)
				return
			case *ast.CommClause:
				if ast.Node(p.Comm) == in {
					e.enterText(p.Colon, text)
					return
				}
			}
			if _, to, ok := e.span(in); ok {
				e.insert(to, ";"+text)
			}
			return
		}
	}
}

// enterText puts a statement behind a brace or colon.
func (e *emitter) enterText(pos token.Pos, text string) {
	if off, ok := e.offset(pos); ok {
		e.insert(off+1, text+";")
	}
}

func (e *emitter) firstClause(b *ast.BlockStmt, text string) {
	for _, s := range b.List {
		if c, ok := s.(*ast.CaseClause); ok {
			e.enterText(c.Colon, text)
			return
		}
	}
}
