package compiler

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"strings"
)

// The texts that are parsed begin with these, so that what follows is at a known offset.
const (
	declHeader = "package main;"
	bodyHeader = "package main;func _(){"
)

// parsed is a cell's syntax.
type parsed struct {
	*cell
	fset *token.FileSet
	// decls are imports, types, functions; body what is to run.
	decls []ast.Decl
	body  []ast.Stmt
	// unresolved are the names in body that nothing before them in body declares.
	unresolved []*ast.Ident
	fileA      *token.File
	fileB      *token.File
	// renamed has the names that are changed for the check, as the user wrote them.
	renamed map[*ast.Ident]string
}

// parse parses a split cell. The error is an *Errors.
func (c *cell) parse() (*parsed, error) {
	p := &parsed{cell: c, fset: token.NewFileSet(), renamed: map[*ast.Ident]string{}}
	a, err := parser.ParseFile(p.fset, "A", declHeader+c.part(importing, declaration), parser.SkipObjectResolution)
	if err := lateImports(err); err != nil {
		return nil, c.syntax(err, len(declHeader))
	}
	p.decls = a.Decls
	p.fileA = p.fset.File(a.Pos())
	b, err := parser.ParseFile(p.fset, "B", bodyHeader+c.part(statement)+"\n}", 0)
	if err != nil {
		return nil, c.syntax(err, len(bodyHeader))
	}
	p.fileB = p.fset.File(b.Pos())
	run, ok := b.Decls[0].(*ast.FuncDecl)
	if !ok || len(b.Decls) != 1 {
		return nil, c.errorAt(len(c.text), "unexpected declaration")
	}
	p.body = run.Body.List
	p.unresolved = b.Unresolved
	return p, nil
}

// lateImports is a parser's error without its complaints of imports that stand behind
// declarations: in a cell they may, and the parser reads them all the same.
func lateImports(err error) error {
	var list scanner.ErrorList
	if !errors.As(err, &list) {
		return err
	}
	var others scanner.ErrorList
	for _, e := range list {
		if !strings.HasPrefix(e.Msg, "imports must appear before") {
			others = append(others, e)
		}
	}
	return others.Err()
}

// syntax makes a parser's error the cell's.
func (c *cell) syntax(err error, header int) error {
	out := &Errors{Cell: c.name}
	var list scanner.ErrorList
	if !errors.As(err, &list) {
		return c.errorAt(0, err.Error())
	}
	for _, e := range list {
		if len(out.List) == maxErrors {
			break
		}
		msg := e.Msg
		if e.Pos.Offset-header >= len(c.text) { // it met what stands around the cell
			msg = strings.Replace(msg, "found '}'", "found the end of the cell", 1)
		}
		one := c.at(e.Pos.Offset-header, "syntax error: "+msg)
		if n := len(out.List); n > 0 && out.List[n-1].Line == one.Line {
			continue
		}
		out.List = append(out.List, one)
	}
	return out
}

// offset is where in the cell's text a position is; false for one that is in no text of
// the user's.
func (p *parsed) offset(pos token.Pos) (int, bool) {
	if !pos.IsValid() {
		return 0, false
	}
	for _, f := range []struct {
		file   *token.File
		header int
	}{{p.fileA, len(declHeader)}, {p.fileB, len(bodyHeader)}} {
		if int(pos) >= f.file.Base() && int(pos) <= f.file.Base()+f.file.Size() {
			off := f.file.Offset(pos) - f.header
			return off, off >= 0 && off <= len(p.text)
		}
	}
	return 0, false
}

// hoisted is a declaration at the top of the body, which becomes one of the package.
type hoisted struct {
	stmt ast.Stmt
	decl *ast.GenDecl
	// assign, if any, is left in the body: it sets what the cell declared before.
	assign *ast.AssignStmt
	names  []string
}

// hoist finds the declarations at the top of the body, and which names there mean an
// earlier cell's object though this cell declares them further down: those become
// name+old.
func (p *parsed) hoist() (tops []hoisted, rest []ast.Stmt, err error) {
	declared := map[string]bool{}
	note := func(h *hoisted, id *ast.Ident) {
		if id.Name != "_" {
			declared[id.Name] = true
			h.names = append(h.names, id.Name)
		}
	}
	for _, s := range p.body {
		h := hoisted{stmt: s}
		switch s := s.(type) {
		case *ast.DeclStmt:
			g, ok := s.Decl.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR && g.Tok != token.CONST {
				break
			}
			h.decl = g
			for _, spec := range g.Specs {
				for _, id := range spec.(*ast.ValueSpec).Names {
					note(&h, id)
				}
			}
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				break
			}
			spec := &ast.ValueSpec{Values: s.Rhs}
			assign := &ast.AssignStmt{TokPos: s.TokPos, Tok: token.ASSIGN, Rhs: s.Rhs}
			fresh, again := false, false
			for _, l := range s.Lhs {
				id, ok := l.(*ast.Ident)
				if !ok {
					off, _ := p.offset(l.Pos())
					return nil, nil, p.errorAt(off, "non-name on left side of :=")
				}
				blank := &ast.Ident{NamePos: id.NamePos, Name: "_"}
				if id.Name == "_" || declared[id.Name] {
					again = again || id.Name != "_"
					spec.Names = append(spec.Names, blank)
					assign.Lhs = append(assign.Lhs, id)
					continue
				}
				fresh = true
				note(&h, id)
				spec.Names = append(spec.Names, id)
				assign.Lhs = append(assign.Lhs, blank)
			}
			if !fresh {
				off, _ := p.offset(s.TokPos)
				return nil, nil, p.errorAt(off, "no new variables on left side of :=")
			}
			h.decl = &ast.GenDecl{TokPos: s.Pos(), Tok: token.VAR, Specs: []ast.Spec{spec}}
			if again {
				h.assign = assign
			}
		}
		if h.decl == nil {
			rest = append(rest, s)
			continue
		}
		tops = append(tops, h)
		if h.assign != nil {
			rest = append(rest, h.assign)
		}
	}
	for _, id := range p.unresolved {
		if declared[id.Name] {
			p.renamed[id] = id.Name
			id.Name += old
		}
	}
	return tops, rest, nil
}
