package compiler

import (
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// Inspect tells of the name at a byte of code: its declaration and, of the standard
// library's, the documentation. "" for what isn't known.
func (s *Session) Inspect(code string, cursor int) string {
	cursor = max(0, min(cursor, len(code)))
	for cursor < len(code) {
		r, n := utf8.DecodeRuneInString(code[cursor:])
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		cursor += n
	}
	path, piece, _ := wordAt(code, cursor)
	if piece == "" {
		return ""
	}
	o, _ := s.lookupPath(code, cursor, append(path, piece))
	if o == nil {
		if o = types.Universe.Lookup(piece); o == nil || len(path) > 0 {
			return ""
		}
	}
	text := types.ObjectString(o, func(p *types.Package) string { return p.Name() })
	if p, ok := o.(*types.PkgName); ok {
		text = "package " + p.Imported().Name() + ` // import "` + p.Imported().Path() + `"`
	}
	if d := s.documentation(o); d != "" {
		text += "\n\n" + d
	}
	return wire.Unmark(strings.TrimSpace(text))
}

// documentation is the comment on an object of the standard library.
func (s *Session) documentation(o types.Object) string {
	pkg, name := o.Pkg(), o.Name()
	if p, ok := o.(*types.PkgName); ok {
		pkg, name = p.Imported(), ""
	}
	if pkg == nil || !isStandard(pkg.Path()) {
		return ""
	}
	dir := filepath.Join(s.tools.goroot, "src", filepath.FromSlash(pkg.Path()))
	context := build.Default
	context.GOROOT = s.tools.goroot
	info, err := context.ImportDir(dir, 0)
	if err != nil {
		return ""
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, file := range info.GoFiles {
		if f, err := parser.ParseFile(fset, filepath.Join(dir, file), nil, parser.ParseComments); err == nil {
			files = append(files, f)
		}
	}
	d, err := doc.NewFromFiles(fset, files, pkg.Path())
	if err != nil {
		return ""
	}
	if name == "" {
		return d.Doc
	}
	recv := ""
	if f, ok := o.(*types.Func); ok {
		if r := f.Type().(*types.Signature).Recv(); r != nil {
			t := r.Type()
			if p, ok := t.(*types.Pointer); ok {
				t = p.Elem()
			}
			if n, ok := t.(*types.Named); ok {
				recv = n.Obj().Name()
			}
		}
	}
	return find(d, recv, name)
}

func find(d *doc.Package, recv, name string) string {
	for _, f := range d.Funcs {
		if recv == "" && f.Name == name {
			return f.Doc
		}
	}
	for _, t := range d.Types {
		if recv == "" && t.Name == name {
			return t.Doc
		}
		for _, f := range append(t.Funcs, t.Methods...) {
			if f.Name == name && (recv == "" || recv == t.Name) {
				return f.Doc
			}
		}
		for _, v := range append(t.Consts, t.Vars...) {
			if recv == "" && contains(v.Names, name) {
				return v.Doc
			}
		}
	}
	for _, v := range append(d.Consts, d.Vars...) {
		if recv == "" && contains(v.Names, name) {
			return v.Doc
		}
	}
	return ""
}
