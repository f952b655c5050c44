package compiler

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// isVar tells whether a segment is the var declaration of a cell that is a whole file.
func (e *emitter) isVar(s segment) bool {
	return strings.HasPrefix(e.text[s.from:], "var") && !isLetterAt(e.text, s.from+3)
}

// isConst tells whether a segment is a constants' declaration.
func (e *emitter) isConst(s segment) bool {
	return strings.HasPrefix(e.text[s.from:], "const") && !isLetterAt(e.text, s.from+5)
}

func isLetterAt(s string, i int) bool {
	return i < len(s) && (s[i] == '_' || s[i] >= 0x80 || s[i] >= '0' && s[i] <= '9' || s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z')
}

// declaration walks a declaration that stays one, and notes its names.
func (e *emitter) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		switch {
		case d.Recv != nil:
		case d.Name.Name == "init":
			e.inits++
			if from, to, ok := e.span(d.Name); ok {
				e.replace(from, to, fmt.Sprintf("%sInit%d", own, e.inits))
			}
		case d.Name.Name == "main":
			e.main = true
			e.names["main"] = 0
		case d.Name.Name != "_":
			e.names[d.Name.Name] = 0
		}
		e.walk(d)
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return
		}
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				e.names[spec.Name.Name] = 0
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					e.names[id.Name] = 0
				}
			}
		}
		e.walk(d)
	}
	delete(e.names, "_")
}

// hoisted writes the declarations of the body as assignments, and gives the text that
// declares the variables.
func (e *emitter) hoisted() (vars string, err error) {
	var b strings.Builder
	declare := func(h hoisted, id *ast.Ident) error {
		if id.Name == "_" {
			return nil
		}
		o := e.info.Defs[id]
		if o == nil {
			return nil
		}
		text, err := e.typeText(o.Type(), false)
		if err != nil && h.decl != nil {
			if text, err = e.inferred(h, id.Name, err); err == nil {
				b.WriteString(text)
				return nil
			}
		}
		if err != nil {
			off, _ := e.offset(id.Pos())
			return e.errorAt(off, fmt.Sprintf("%v: convert the value to an interface, or keep it in a function", err))
		}
		fmt.Fprintf(&b, "var %s %s\n", exported(id.Name), text)
		return nil
	}
	for _, d := range e.decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, spec := range g.Specs {
				for _, id := range spec.(*ast.ValueSpec).Names {
					if err := declare(hoisted{decl: g}, id); err != nil {
						return "", err
					}
				}
			}
		}
	}
	for _, h := range e.tops {
		if h.decl.Tok == token.CONST {
			for _, name := range h.names {
				e.names[name] = 0
			}
			e.walk(h.decl)
			continue
		}
		e.done++
		for _, name := range h.names {
			e.names[name] = e.done
		}
		atLoad := false
		for _, spec := range h.decl.Specs {
			for _, id := range spec.(*ast.ValueSpec).Names {
				if err := declare(h, id); err != nil {
					if atLoad = e.declareAtLoad(h); !atLoad {
						return "", err
					}
				}
			}
		}
		if !atLoad {
			e.assignment(h)
		}
		e.walk(h.stmt)
		if _, to, ok := e.span(h.stmt); ok {
			e.insert(to, fmt.Sprintf(";%s=%d;%s.Check()", doneName, e.done, e.importName(RuntimePath)))
		}
	}
	return b.String(), nil
}

// loaded is a variable that is set when the cell is loaded.
type loaded struct {
	name     string
	from, to int // its value's text
}

// declareAtLoad declares a variable with its value and without its type, as its type has
// no name that another package may use. It is set when the cell is loaded, so its value
// may name nothing of the cell's; false for one that does.
func (e *emitter) declareAtLoad(h hoisted) bool {
	if len(h.decl.Specs) != 1 || h.assign != nil {
		return false
	}
	s := h.decl.Specs[0].(*ast.ValueSpec)
	if len(s.Names) != 1 || len(s.Values) != 1 {
		return false
	}
	free := true
	ast.Inspect(s.Values[0], func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			free = false
		case *ast.Ident:
			o := e.info.Uses[n]
			if _, isPackage := o.(*types.PkgName); o != nil && o.Pkg() == e.pkg && !isPackage {
				free = false
			}
		}
		return free
	})
	from, to, ok1 := e.span(s.Values[0])
	begin, end, ok2 := e.span(h.stmt)
	if !free || !ok1 || !ok2 {
		return false
	}
	e.atLoad = append(e.atLoad, loaded{s.Names[0].Name, from, to})
	// In its place nothing is done, but the value is still walked.
	e.replace(begin, from, "if false{_=")
	e.insert(end, "}")
	return true
}

// isAgain tells the statement that stands for the old names on the left of a :=, for
// the check alone.
func (e *emitter) isAgain(s ast.Stmt) bool {
	for _, h := range e.tops {
		if h.assign != nil && ast.Stmt(h.assign) == s {
			return true
		}
	}
	return false
}

// assignment makes a declaration in the body an assignment, by edits.
func (e *emitter) assignment(h hoisted) {
	if s, ok := h.stmt.(*ast.AssignStmt); ok {
		if off, ok := e.offset(s.TokPos); ok {
			e.replace(off, off+2, "=")
		}
		return
	}
	g := h.decl
	if len(h.names) == 0 {
		return // var _ T = x: its type still tells what x is
	}
	drop := func(from, to token.Pos) {
		a, ok1 := e.offset(from)
		b, ok2 := e.offset(to)
		if ok1 && ok2 && a < b {
			e.replace(a, b, " ")
		}
	}
	at := g.Pos()
	for _, spec := range g.Specs {
		s := spec.(*ast.ValueSpec)
		if len(s.Values) == 0 {
			e.skip[s.Type] = true
			drop(at, s.End())
			at = s.End()
			continue
		}
		drop(at, s.Pos())
		if s.Type != nil {
			e.skip[s.Type] = true
			drop(s.Names[len(s.Names)-1].End(), s.Type.End())
		}
		if g.Lparen.IsValid() {
			// Specs may be parted by a newline that drop would take.
			if to, ok := e.offset(s.End()); ok {
				e.insert(to, ";")
			}
		}
		at = s.End()
	}
	drop(at, g.End())
}

// showResult shows the last expression, where it has a value.
func (e *emitter) showResult() error {
	if len(e.body) == 0 {
		return nil
	}
	s, ok := e.body[len(e.body)-1].(*ast.ExprStmt)
	if !ok || len(e.rest) == 0 || e.rest[len(e.rest)-1] != s {
		return nil
	}
	name := e.shown(s)
	from, to, ok := e.span(s.X)
	if !ok || name == "" && !e.dropped(s) {
		return nil
	}
	if name == "" {
		name = "Drop"
	}
	// Before the edits of the expression's own first name, after those of its last.
	e.list = append([]edit{{from, from, e.importName(RuntimePath) + "." + name + "(", -1}}, e.list...)
	e.insert(to, ")")
	return nil
}

// shown is the function of package live that shows the last expression; "" for one that
// is not shown.
func (c *checked) shown(s *ast.ExprStmt) string {
	t := c.info.Types[s.X]
	switch {
	case t.IsVoid() || t.IsBuiltin() || t.IsType() || c.quiet || c.prints(s.X):
		return ""
	case isTuple(t.Type):
		return "ShowAll"
	case isErrorType(t.Type) && isCall(s.X):
		return "ShowError"
	}
	return "Show"
}

// dropped tells a value that isn't shown, but that something must take.
func (c *checked) dropped(s *ast.ExprStmt) bool {
	t := c.info.Types[s.X]
	return c.quiet && !isCall(s.X) && !t.IsVoid() && !t.IsBuiltin() && !t.IsType()
}

func isErrorType(t types.Type) bool {
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

func isCall(x ast.Expr) bool {
	for {
		switch y := x.(type) {
		case *ast.ParenExpr:
			x = y.X
		case *ast.CallExpr:
			return true
		default:
			return false
		}
	}
}

// prints tells a call of the functions whose results nobody wants to see.
func (c *checked) prints(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := call.Fun.(*ast.Ident) // of a package that is imported by a dot
	if s, selects := call.Fun.(*ast.SelectorExpr); selects {
		id, ok = s.Sel, true
	}
	if !ok {
		return false
	}
	f, ok := c.info.Uses[id].(*types.Func)
	if !ok || f.Pkg() == nil {
		return false
	}
	switch f.Pkg().Path() {
	case "fmt":
		return strings.HasPrefix(f.Name(), "Print") || strings.HasPrefix(f.Name(), "Fprint") || strings.HasPrefix(f.Name(), "Scan")
	case "os", "io", "bufio", "strings", "bytes":
		return strings.HasPrefix(f.Name(), "Write")
	}
	return false
}
