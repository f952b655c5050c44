package compiler

import (
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"path/filepath"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// maxMatches bounds an answer.
const maxMatches = 500

// IsComplete tells whether code can be run as it is, by Jupyter's words.
func (s *Session) IsComplete(code string) (status, indent string) {
	c, err := split("In[0]", code)
	if err == nil {
		_, err = c.parse()
	}
	list, _ := err.(*Errors)
	switch {
	case err == nil:
		return "complete", ""
	case list != nil && list.Incomplete:
		return "incomplete", strings.Repeat("\t", depthOf(code))
	}
	return "invalid", ""
}

// depthOf is how many braces are open at the end of a text.
func depthOf(code string) int {
	depth := 0
	c := &cell{name: "", text: code, lines: []int{0}}
	toks, err := c.scan()
	if err != nil {
		return 0
	}
	for _, t := range toks {
		switch t.tok {
		case token.LBRACE, token.LPAREN, token.LBRACK:
			depth++
		case token.RBRACE, token.RPAREN, token.RBRACK:
			depth--
		}
	}
	return max(0, min(depth, 20))
}

// wordAt is the dotted name that ends at a byte: its parts before the last dot, and the
// piece behind.
func wordAt(code string, at int) (path []string, piece string, start int) {
	at = max(0, min(at, len(code)))
	i := at
	for i > 0 {
		r, n := utf8.DecodeLastRuneInString(code[:i])
		if r != '.' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		i -= n
	}
	parts := strings.Split(code[i:at], ".")
	piece = parts[len(parts)-1]
	return parts[:len(parts)-1], piece, at - len(piece)
}

// Complete answers for a byte of code.
func (s *Session) Complete(code string, cursor int) wire.Completion {
	path, piece, start := wordAt(code, cursor)
	c := wire.Completion{Start: start, End: max(0, min(cursor, len(code)))}
	prefix := ""
	if len(path) > 0 {
		prefix = strings.Join(path, ".") + "."
	}
	c.Start -= len(prefix)
	found := map[string]string{}
	add := func(name, kind string) {
		if name != "" && name != "_" && strings.HasPrefix(name, piece) && !strings.Contains(name, old) {
			found[name] = kind
		}
	}
	if len(path) == 0 {
		s.names(code[:start]+" "+code[c.End:], add)
	} else {
		s.members(code, c.End, path, add)
	}
	for name := range found {
		c.Matches = append(c.Matches, name)
	}
	sort.Strings(c.Matches)
	c.Matches = c.Matches[:min(len(c.Matches), maxMatches)]
	for i, name := range c.Matches {
		c.Types = append(c.Types, found[name])
		c.Matches[i] = prefix + name
	}
	return c
}

// names are what a plain name can be: the live names, what this cell declares, the
// standard library's packages, the language's own words.
func (s *Session) names(code string, add func(name, kind string)) {
	for _, name := range types.Universe.Names() {
		add(name, kindOf(types.Universe.Lookup(name)))
	}
	for t := token.BREAK; t <= token.VAR; t++ {
		add(t.String(), "keyword")
	}
	add("display", "function")
	for path := range s.archives {
		if isStandard(path) {
			add(path[strings.LastIndex(path, "/")+1:], "module")
		}
	}
	var sc scanner.Scanner
	fset := token.NewFileSet()
	sc.Init(fset.AddFile("", -1, len(code)), []byte(code), func(token.Position, string) {}, 0)
	for {
		_, t, lit := sc.Scan()
		if t == token.EOF {
			break
		}
		if t == token.IDENT {
			add(lit, "instance")
		}
	}
	for name, l := range s.scope.names {
		if l.path != "" {
			add(name, "module")
		} else {
			add(name, kindOf(l.object))
		}
	}
}

func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && first != "vendor" && !strings.HasPrefix(path, PathPrefix) &&
		!strings.Contains("/"+path+"/", "/internal/")
}

// members are what can stand behind a dot.
func (s *Session) members(code string, cursor int, path []string, add func(name, kind string)) {
	o, t := s.lookupPath(code, cursor, path)
	if p, ok := o.(*types.PkgName); ok {
		for _, name := range p.Imported().Scope().Names() {
			if token.IsExported(name) {
				add(name, kindOf(p.Imported().Scope().Lookup(name)))
			}
		}
		return
	}
	if t == nil {
		return
	}
	set := types.NewMethodSet(pointerTo(t))
	for i := 0; i < set.Len(); i++ {
		if m := set.At(i).Obj(); m.Exported() || m.Pkg() != nil && m.Pkg().Path() == "main" {
			add(m.Name(), "method")
		}
	}
	fields(t, map[types.Type]bool{}, add)
}

func pointerTo(t types.Type) types.Type {
	if _, ok := t.Underlying().(*types.Pointer); ok || types.IsInterface(t) {
		return t
	}
	return types.NewPointer(t)
}

func fields(t types.Type, seen map[types.Type]bool, add func(name, kind string)) {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	st, ok := t.Underlying().(*types.Struct)
	if !ok || seen[t] {
		return
	}
	seen[t] = true
	for i := 0; i < st.NumFields(); i++ {
		f := st.Field(i)
		if f.Exported() || f.Pkg().Path() == "main" {
			add(f.Name(), "instance")
		}
		if f.Embedded() {
			fields(f.Type(), seen, add)
		}
	}
}

// lookupPath is what a dotted name means at a place of a cell. The cell need not be
// whole: what is live is looked up first, and the cell's own declarations as far as
// they can be checked.
func (s *Session) lookupPath(code string, cursor int, path []string) (types.Object, types.Type) {
	o := s.inCell(code, cursor, path[0])
	if o == nil {
		if l, ok := s.scope.names[path[0]]; ok && l.object != nil {
			o = l.object
		} else {
			o = s.packageNamed(path[0], l.path)
		}
	}
	if o == nil {
		return nil, nil
	}
	for _, name := range path[1:] {
		if p, ok := o.(*types.PkgName); ok {
			o = p.Imported().Scope().Lookup(name)
		} else {
			o, _, _ = types.LookupFieldOrMethod(o.Type(), true, types.NewPackage("main", "main"), name)
		}
		if o == nil {
			return nil, nil
		}
	}
	return o, o.Type()
}

// packageNamed is a package by its import path, or one of the standard library by its
// last element.
func (s *Session) packageNamed(name, path string) types.Object {
	if path == "" {
		for p := range s.archives {
			if isStandard(p) && (p == name || strings.HasSuffix(p, "/"+name)) && (path == "" || len(p) < len(path) || len(p) == len(path) && p < path) {
				path = p
			}
		}
	}
	if path == "" {
		return nil
	}
	pkg, err := s.importer.Import(path)
	if err != nil {
		return nil
	}
	return types.NewPkgName(token.NoPos, nil, name, pkg)
}

// inCell is what a name means in the cell's own text, up to the cursor.
func (s *Session) inCell(code string, cursor int, name string) types.Object {
	// The line of the cursor is in the making: it is left out, and what is open closed.
	from := strings.LastIndexByte(code[:cursor], '\n') + 1
	c, err := split("In[0]", closed(code[:from]))
	if err != nil {
		return nil
	}
	p, err := c.parse()
	if err != nil {
		return nil
	}
	checked, _ := p.checkLoosely(&s.scope, s.importer, s.tools.language)
	if checked == nil {
		return nil
	}
	var best types.Object
	for id, o := range checked.info.Defs {
		if id.Name == name && o != nil && (best == nil || o.Pos() > best.Pos()) {
			best = o
		}
	}
	for _, o := range checked.info.Implicits {
		if p, ok := o.(*types.PkgName); ok && p.Name() == name && best == nil {
			best = p
		}
	}
	return best
}

// closed closes the brackets that a text leaves open.
func closed(code string) string {
	c := &cell{text: code, lines: []int{0}}
	toks, err := c.scan()
	if err != nil {
		return code
	}
	var open []string
	for _, t := range toks {
		switch t.tok {
		case token.LPAREN:
			open = append(open, ")")
		case token.LBRACE:
			open = append(open, "}")
		case token.LBRACK:
			open = append(open, "]")
		case token.RPAREN, token.RBRACE, token.RBRACK:
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		}
	}
	for i := len(open) - 1; i >= 0; i-- {
		code += open[i]
	}
	return code
}

func kindOf(o types.Object) string {
	switch o.(type) {
	case *types.Func, *types.Builtin:
		return "function"
	case *types.TypeName:
		return "class"
	case *types.PkgName:
		return "module"
	case *types.Const:
		return "constant"
	}
	return "instance"
}

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
