package compiler

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"strconv"
	"strings"
)

// checked is a cell whose types are known.
type checked struct {
	*parsed
	tops []hoisted
	rest []ast.Stmt
	pkg  *types.Package
	info *types.Info
	// unused are the local variables that nothing reads.
	unused map[token.Pos]bool
	// display is the object of the kernel's own function of that name.
	display types.Object
	// originals are the objects behind those that stand under another name.
	originals map[types.Object]types.Object
	// imports are the names for packages that this cell brings.
	imports map[string]string
	dots    []string
}

// check checks a cell against the names that are alive. The error is an *Errors.
func (p *parsed) check(s *scope, imp types.Importer, goVersion string) (*checked, error) {
	c, err := p.checkLoosely(s, imp, goVersion)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// checkLoosely is check that gives what it knows also of a cell that is in error.
func (p *parsed) checkLoosely(s *scope, imp types.Importer, goVersion string) (*checked, error) {
	c := &checked{parsed: p, unused: map[token.Pos]bool{}, imports: map[string]string{}, originals: map[types.Object]types.Object{}}
	var err error
	if c.tops, c.rest, err = p.hoist(); err != nil {
		return nil, err
	}
	file := c.analysis()
	if err := c.ownImports(); err != nil {
		return nil, err
	}
	c.pkg = types.NewPackage("main", "main")
	c.display = displayFunc(c.pkg)
	c.enliven(file, s, imp)

	c.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}, Implicits: map[ast.Node]types.Object{},
		Instances: map[*ast.Ident]types.Instance{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	found := &found{c: c, seen: map[string]bool{}, out: &Errors{Cell: p.cell.name}}
	config := types.Config{
		Importer: imp, Sizes: types.SizesFor("gc", targetArch), GoVersion: goVersion, Error: found.take,
	}
	if err := c.ownMethods(s); err != nil {
		return nil, err
	}
	checkFiles(&config, p.fset, c, file, found)
	for id, name := range p.renamed {
		id.Name = name // its end is told by the name's length
	}
	if len(found.out.List) > 0 {
		return c, found.out
	}
	return c, nil
}

// checkFiles makes a panic of the checker's an error of the cell's: what is checked is
// not quite what the checker is made for.
func checkFiles(config *types.Config, fset *token.FileSet, c *checked, file *ast.File, f *found) {
	defer func() {
		if r := recover(); r != nil && len(f.out.List) == 0 {
			f.out.List = append(f.out.List, Error{Line: 1, Column: 1, Message: fmt.Sprintf("the cell can't be checked (%.200v): write it another way", r)})
		}
	}()
	// Every error comes by config.Error.
	_ = types.NewChecker(config, fset, c.pkg, c.info).Files([]*ast.File{file})
}

// analysis is the file that is checked: declarations of the body stand at package level.
func (c *checked) analysis() *ast.File {
	file := &ast.File{Package: token.Pos(c.fileA.Base()), Name: ast.NewIdent("main"),
		FileStart: token.Pos(c.fileA.Base()), FileEnd: token.Pos(c.fileB.Base() + c.fileB.Size())}
	file.Decls = append(file.Decls, c.decls...)
	for _, h := range c.tops {
		file.Decls = append(file.Decls, h.decl)
	}
	// Imports must come first.
	var imports, others []ast.Decl
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			imports = append(imports, d)
		} else {
			others = append(others, d)
		}
	}
	// No name of the user's with an ending (see old) is this one.
	run := &ast.FuncDecl{Name: ast.NewIdent(old), Type: &ast.FuncType{Params: &ast.FieldList{}},
		Body: &ast.BlockStmt{List: c.rest, Lbrace: token.Pos(c.fileB.Base()), Rbrace: token.Pos(c.fileB.Base() + c.fileB.Size() - 1)}}
	file.Decls = append(append(imports, others...), run)
	return file
}

// ownImports notes the cell's own imports, and refuses what can't be had.
func (c *checked) ownImports() error {
	for _, d := range c.decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.IMPORT {
			continue
		}
		for _, spec := range g.Specs {
			i := spec.(*ast.ImportSpec)
			path, err := strconv.Unquote(i.Path.Value)
			off, _ := c.offset(i.Pos())
			switch {
			case err != nil:
				return c.errorAt(off, "this is no import path")
			case path == "C":
				return c.errorAt(off, "cgo can't be used in a cell: put the C code into a module of its own, and get that by %get")
			case strings.HasPrefix(path, RuntimePath) || strings.HasPrefix(path, PathPrefix):
				return c.errorAt(off, "this package is the kernel's own")
			case i.Name != nil && i.Name.Name == ".":
				c.dots = append(c.dots, path)
			case i.Name != nil && i.Name.Name != "_":
				c.imports[i.Name.Name] = path
			}
		}
	}
	return nil
}

// enliven puts the live names that the cell uses into its package, and the imports of
// earlier cells into its file.
func (c *checked) enliven(file *ast.File, s *scope, imp types.Importer) {
	declared := c.declares()
	names := used(file)
	if names["display"] && !declared["display"] && s.names["display"].object == nil {
		c.pkg.Scope().Insert(c.display)
	}
	importing := func(name, path string) {
		spec := &ast.ImportSpec{Path: &ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(path), ValuePos: file.Package}}
		if name != "" {
			spec.Name = &ast.Ident{Name: name, NamePos: file.Package}
		}
		d := &ast.GenDecl{Tok: token.IMPORT, TokPos: file.Package, Specs: []ast.Spec{spec}}
		file.Decls = append([]ast.Decl{d}, file.Decls...)
	}
	brought := map[string]bool{}
	for name := range c.imports {
		brought[name] = true
	}
	for _, path := range c.unnamed() {
		brought[path[strings.LastIndex(path, "/")+1:]] = true
	}
	for name, l := range s.names {
		switch {
		case l.path != "":
			if names[name] && !declared[name] && !brought[name] {
				importing(name, l.path)
			}
			if names[name+old] {
				importing(name+old, l.path)
			}
		case names[name] && !declared[name] && !brought[name]:
			c.pkg.Scope().Insert(l.object)
		case names[name+old]:
			o := renamedObject(l.object, name+old)
			c.originals[o] = l.object
			c.pkg.Scope().Insert(o)
		}
	}
	for name, selected := range c.selected() {
		if !declared[name] && !brought[name] && s.names[name].path == "" && s.names[name].object == nil && types.Universe.Lookup(name) == nil {
			if path := guess(imp, name, selected); path != "" {
				importing(name, path)
			}
		}
	}
	for _, path := range s.dots {
		if pkg, err := imp.Import(path); err == nil {
			for _, name := range pkg.Scope().Names() {
				if names[name] && !declared[name] && !brought[name] && token.IsExported(name) {
					c.pkg.Scope().Insert(pkg.Scope().Lookup(name))
				}
			}
		}
	}
}

// renamedObject is an object under another name, for a scope.
func renamedObject(o types.Object, name string) types.Object {
	switch o := o.(type) {
	case *types.Const:
		return types.NewConst(o.Pos(), o.Pkg(), name, o.Type(), o.Val())
	case *types.TypeName:
		return types.NewTypeName(o.Pos(), o.Pkg(), name, o.Type())
	case *types.Func:
		return types.NewFunc(o.Pos(), o.Pkg(), name, o.Type().(*types.Signature))
	default:
		return types.NewVar(o.Pos(), o.Pkg(), name, o.Type())
	}
}

// ownMethods refuses methods of earlier cells' types, which the checker is not made for.
func (c *checked) ownMethods(s *scope) error {
	declared := c.declares()
	for _, d := range c.decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || len(f.Recv.List) != 1 {
			continue
		}
		id := baseName(f.Recv)
		if id == nil || declared[id.Name] {
			continue
		}
		if l := s.names[id.Name]; l.object != nil {
			off, _ := c.offset(id.Pos())
			return c.errorAt(off, fmt.Sprintf("%s is declared in an earlier cell, and in use: a method would not be one of the values that there are; declare the type again in this cell, with all its methods", id.Name))
		}
	}
	return nil
}

// unnamed are the paths that are imported without a name.
func (c *checked) unnamed() (paths []string) {
	for _, d := range c.decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			for _, spec := range g.Specs {
				if i := spec.(*ast.ImportSpec); i.Name == nil {
					path, _ := strconv.Unquote(i.Path.Value)
					paths = append(paths, path)
				}
			}
		}
	}
	return paths
}

// declares are the names that the cell declares at package level.
func (c *checked) declares() map[string]bool {
	names := map[string]bool{}
	for _, d := range c.decls {
		addNames(d, names)
	}
	for _, h := range c.tops {
		for _, name := range h.names {
			names[name] = true
		}
	}
	return names
}

// addNames adds the names that a declaration outside of functions declares; a method
// declares none.
func addNames(d ast.Decl, names map[string]bool) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names[d.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names[spec.Name.Name] = true
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					names[id.Name] = true
				}
			}
		}
	}
}

// found collects the checker's errors.
type found struct {
	c    *checked
	seen map[string]bool
	out  *Errors
}

var sameType = regexp.MustCompile(`cannot use .*main\.`)

// take is called by the checker for each error.
func (f *found) take(err error) {
	e, ok := err.(types.Error)
	if !ok {
		return
	}
	msg := strings.ReplaceAll(e.Msg, old, "")
	switch {
	case strings.Contains(msg, "declared and not used"):
		f.c.unused[e.Pos] = true
		return
	case strings.Contains(msg, "imported and not used"), strings.Contains(msg, "imported as") && strings.Contains(msg, "and not used"):
		return
	case strings.HasPrefix(msg, "initialization cycle"), strings.HasPrefix(msg, "\t"):
		if !f.c.file {
			return
		}
	case strings.HasPrefix(msg, "implicit assignment to unexported field"):
		return
	case strings.HasSuffix(msg, "is not used") && f.c.isResult(e.Pos):
		return
	case strings.HasPrefix(msg, "could not import "):
		if i := strings.LastIndex(msg, noPackage); i >= 0 {
			msg = msg[i+len(noPackage) : len(msg)-1]
		}
	case sameType.MatchString(msg):
		if a, b := typesIn(msg); a != "" && a == b {
			msg += ": the one is of an earlier cell's declaration of this type; make the value anew"
		}
	}
	// All cells are one package to the user.
	msg = ownPackage.ReplaceAllString(msg, "$1")
	off, ok := f.c.offset(e.Pos)
	if !ok {
		off = 0
	}
	one := f.c.at(off, msg)
	key := fmt.Sprint(one.Line, ":", one.Column, msg)
	if f.seen[key] || len(f.out.List) >= maxErrors {
		return
	}
	f.seen[key] = true
	f.out.List = append(f.out.List, one)
}

var ownPackage = regexp.MustCompile(`(^|[^\w."])main\.`)

var usedAs = regexp.MustCompile(`of (?:struct |interface )?type ([^ )]+)\) as (?:struct |interface )?([^ ]+) value`)

func typesIn(msg string) (a, b string) {
	if m := usedAs.FindStringSubmatch(msg); m != nil {
		return m[1], m[2]
	}
	return "", ""
}

// isResult tells whether the checker speaks of the last expression. It names its begin,
// or the operator's place.
func (c *checked) isResult(pos token.Pos) bool {
	if len(c.body) == 0 {
		return false
	}
	s, ok := c.body[len(c.body)-1].(*ast.ExprStmt)
	return ok && pos >= s.Pos() && pos < s.End()
}
