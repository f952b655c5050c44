package compiler

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"sort"
	"strconv"
	"strings"
)

// hiddenTag keeps a field that the user wrote in lower case out of encoders.
const hiddenTag = `json:"-" xml:"-" yaml:"-"`

// emitter writes a checked cell as the text of a package.
type emitter struct {
	*checked
	edits
	// cells has the earlier cells by their packages.
	cells    map[*types.Package]*made
	imported map[string]string // packages by path that have a name of the emitter's
	named    map[string]string // the user's names for packages that are still used
	aliases  map[string]bool   // of predeclared types that are embedded
	names    map[string]int    // what the cell declares, see made.names
	done     int               // how many declarations of variables the body has
	inits    int
	main     bool
	skip     map[ast.Node]bool // what is not walked
	atLoad   []loaded          // variables whose types can't be named
	objects  []string          // what is registered, in order

	inferences int // helpers that give a variable its type
}

// emit gives the text of the package, and notes in m what it declares. The error is an
// *Errors.
func (c *checked) emit(cells map[*types.Package]*made, m *made) (text string, err error) {
	e := &emitter{checked: c, cells: cells, imported: map[string]string{}, named: map[string]string{},
		aliases: map[string]bool{}, names: map[string]int{}, skip: map[ast.Node]bool{}}
	for _, d := range c.decls {
		e.declaration(d)
	}
	for _, s := range c.rest {
		if !e.isAgain(s) {
			e.walk(s)
		}
	}
	vars, err := e.hoisted()
	if err != nil {
		return "", err
	}
	if err := e.showResult(); err != nil {
		return "", err
	}
	e.edits.sort()
	for _, l := range e.atLoad {
		vars += fmt.Sprintf("var %s = %s%s\n", exported(l.name), e.lineComment(l.from), e.make(e.text, l.from, l.to, false))
	}
	text = e.assemble(vars)
	m.names, m.objects = e.names, e.objects
	return text, nil
}

// assemble puts the pieces together: the declarations with their text, the variables
// with their types, and the function that runs the body.
func (e *emitter) assemble(vars string) string {
	decls, body := piece{e: e}, piece{e: e}
	for _, s := range e.segments {
		switch {
		case s.kind == importing:
		case s.kind == declaration && !e.isVar(s), e.isConst(s):
			decls.add(s)
		case s.kind == statement:
			body.add(s)
		}
	}
	var b strings.Builder
	run := e.run(body.b.String())
	b.WriteString("package " + packageName + "\n")
	for _, path := range sortedKeys(e.imported) {
		fmt.Fprintf(&b, "import %s %q\n", e.imported[path], path)
	}
	for _, name := range sortedKeys(e.named) {
		fmt.Fprintf(&b, "import %s %q\n", name, e.named[name])
	}
	for _, path := range e.blankImports() {
		fmt.Fprintf(&b, "import _ %q\n", path)
	}
	for _, name := range sortedKeys(e.aliases) {
		fmt.Fprintf(&b, "type %s = %s\n", exported(name), name)
	}
	b.WriteString(vars)
	b.WriteString(run)
	b.WriteString(decls.b.String())
	return b.String()
}

// piece is the text of segments, each at its line. Where one follows another on a line of
// its own, its place needs no comment: the compiler takes a second for a thousand of them.
type piece struct {
	e  *emitter
	b  strings.Builder
	at int // where the last segment ended
}

func (p *piece) add(s segment) {
	if gap := p.e.text[min(p.at, s.from):s.from]; p.b.Len() > 0 && s.from > p.e.begin && strings.Contains(gap, "\n") {
		p.b.WriteString(blank(gap))
	} else {
		p.b.WriteString(p.e.lineComment(s.from))
	}
	p.b.WriteString(p.e.apply(p.e.text, s.from, s.end) + ";")
	p.at = s.end
}

// run is the function that runs the cell.
func (e *emitter) run(body string) string {
	r := e.importName(RuntimePath)
	var b strings.Builder
	fmt.Fprintf(&b, "var %s int\nfunc init(){%s.Register(%s,&%s%s)}\nfunc %s(){\n", doneName, r, runName, doneName, e.registered(), runName)
	if e.file {
		b.WriteString(e.initOrder())
	}
	for i := 1; i <= e.inits; i++ {
		fmt.Fprintf(&b, "%sInit%d()\n", own, i)
	}
	b.WriteString(body + "\n")
	if e.main {
		b.WriteString(exported("main") + "()\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// registered are the variables and functions that later cells may use without the
// compiler (see direct), as the last arguments of Register.
func (e *emitter) registered() string {
	var b strings.Builder
	for _, name := range sortedKeys(e.names) {
		switch o := e.pkg.Scope().Lookup(name).(type) {
		case *types.Var:
			b.WriteString(",&" + exported(name))
		case *types.Func:
			if o.Type().(*types.Signature).TypeParams().Len() > 0 {
				continue
			}
			b.WriteString("," + exported(name))
		default:
			continue
		}
		e.objects = append(e.objects, name)
	}
	return b.String()
}

// initOrder sets the variables of a cell that is a whole file, in Go's order.
func (e *emitter) initOrder() string {
	var b strings.Builder
	for _, i := range e.info.InitOrder {
		var lhs []string
		for _, v := range i.Lhs {
			lhs = append(lhs, exported(v.Name()))
		}
		from, ok1 := e.offset(i.Rhs.Pos())
		to, ok2 := e.offset(i.Rhs.End())
		if ok1 && ok2 {
			fmt.Fprintf(&b, "%s = %s%s;\n", strings.Join(lhs, ","), e.lineComment(from), e.apply(e.text, from, to))
		}
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// importName is the emitter's name for a package.
func (e *emitter) importName(path string) string {
	if path == RuntimePath {
		e.imported[path] = runtimeName
	}
	if e.imported[path] == "" {
		e.imported[path] = fmt.Sprintf("%sP%d", own, len(e.imported))
	}
	return e.imported[path]
}

// blankImports are those that the cell asks for for their effect.
func (e *emitter) blankImports() (paths []string) {
	for _, d := range e.decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			for _, spec := range g.Specs {
				if i := spec.(*ast.ImportSpec); i.Name != nil && i.Name.Name == "_" {
					path, _ := strconv.Unquote(i.Path.Value)
					paths = append(paths, path)
				}
			}
		}
	}
	return paths
}

// qualified is how the cell's package names an object of package level; false for one
// that it can't.
func (e *emitter) qualified(o types.Object) (string, bool) {
	switch pkg := o.Pkg(); {
	case pkg == nil:
		return o.Name(), true
	case pkg == e.pkg:
		return exported(o.Name()), true
	case e.cells[pkg] != nil:
		return e.importName(e.cells[pkg].path) + "." + exported(o.Name()), true
	default:
		return e.importName(pkg.Path()) + "." + o.Name(), o.Exported()
	}
}

// mine tells whether a package is a cell's.
func (e *emitter) mine(pkg *types.Package) bool {
	return pkg != nil && (pkg == e.pkg || e.cells[pkg] != nil)
}

// memberName is the emitted name of a field or method; false for a lower-case one that
// isn't a cell's.
func (e *emitter) memberName(o types.Object, name string) (string, bool) {
	if o.Exported() || name == "_" {
		return name, true
	}
	if !e.mine(o.Pkg()) {
		return name, false
	}
	if v, ok := o.(*types.Var); ok && v.Embedded() && e.localType(v.Type()) {
		return name, true
	}
	return exported(name), true
}

// localType tells whether a type, or what it points to, is declared in a function.
func (e *emitter) localType(t types.Type) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	var o *types.TypeName
	switch t := t.(type) {
	case *types.Named:
		o = t.Obj()
	case *types.Alias:
		o = t.Obj()
	default:
		return false
	}
	return o.Pkg() != nil && o.Parent() != o.Pkg().Scope()
}

// hidden tells whether a field is one that encoders must not see.
func (e *emitter) hidden(f *types.Var) bool {
	return !f.Exported() && !f.Embedded() && f.Name() != "_" && e.mine(f.Pkg())
}

// basicAlias is the name of the alias that a predeclared type is embedded by.
func (e *emitter) basicAlias(name string) string {
	e.aliases[name] = true
	return exported(name)
}

// span is where in the text a node is.
func (e *emitter) span(n ast.Node) (from, to int, ok bool) {
	from, ok1 := e.offset(n.Pos())
	to, ok2 := e.offset(n.End())
	return from, to, ok1 && ok2 && from <= to
}

// ident writes a name as the emitted package has it.
func (e *emitter) ident(id *ast.Ident) {
	from, ok := e.offset(id.Pos())
	name := id.Name
	if !ok || !strings.HasPrefix(e.text[from:], name) {
		return
	}
	rename := func(s string) {
		if s != name {
			e.replace(from, from+len(name), s)
		}
	}
	o := e.info.Uses[id]
	if o == nil {
		if o = e.info.Defs[id]; o == nil {
			return
		}
	} else if v, ok := e.info.Defs[id].(*types.Var); ok && v.Embedded() {
		if t, ok := o.(*types.TypeName); ok && t.Pkg() == nil {
			rename(e.basicAlias(t.Name()))
			return
		}
	}
	if original := e.originals[o]; original != nil {
		o = original
	}
	switch o := o.(type) {
	case *types.PkgName:
		if o.Imported().Path() == "unsafe" || name != o.Name() {
			rename(e.importName(o.Imported().Path()))
			return
		}
		e.named[o.Name()] = o.Imported().Path()
		return
	case *types.Label, *types.Nil, *types.Builtin:
		return
	case *types.Var:
		if o.IsField() {
			s, _ := e.memberName(o, name)
			rename(s)
			return
		}
	case *types.Func:
		if sig, ok := o.Type().(*types.Signature); ok && sig.Recv() != nil {
			s, _ := e.memberName(o, name)
			rename(s)
			return
		}
	}
	switch {
	case o == e.display:
		rename(e.importName(RuntimePath) + ".Display")
	case o.Pkg() == nil || o.Parent() != o.Pkg().Scope() || name == "_":
	default:
		s, _ := e.qualified(o)
		rename(s)
	}
}

// selector writes a qualified name. Functions that print, exit or read are replaced by
// those of package live that know the cell.
func (e *emitter) selector(s *ast.SelectorExpr, parent ast.Node) bool {
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return false
	}
	p, ok := e.info.Uses[x].(*types.PkgName)
	if !ok {
		return false
	}
	o := e.info.Uses[s.Sel]
	if o == nil {
		return false
	}
	e.skip[s.Sel] = true
	name := replaced[p.Imported().Path()+"."+o.Name()]
	in := RuntimePath
	switch path := p.Imported().Path(); {
	case path == "os" && o.Name() == "Stdin" && e.reads(s, parent):
		in, name = RuntimePath+"/stdin", "Stdin"
	case path == "time" && o.Name() == "AfterFunc":
		in, name = RuntimePath+"/timer", "AfterFunc"
	}
	from, to, ok := e.span(s)
	if name == "" || !ok {
		return false
	}
	e.replace(from, to, e.importName(in)+"."+name)
	return true
}

// reads tells whether os.Stdin stands where another reader can: as the argument for an
// interface, or where one of its methods is called.
func (e *emitter) reads(s *ast.SelectorExpr, parent ast.Node) bool {
	switch parent := parent.(type) {
	case *ast.SelectorExpr:
		return parent.X == s
	case *ast.CallExpr:
		sig, ok := e.info.TypeOf(parent.Fun).(*types.Signature)
		if !ok {
			return false
		}
		for i, a := range parent.Args {
			if a == ast.Expr(s) && i < sig.Params().Len() && !(sig.Variadic() && i == sig.Params().Len()-1) {
				return types.IsInterface(sig.Params().At(i).Type())
			}
		}
	}
	return false
}

// replaced are the standard library's functions that package live has a twin of.
var replaced = map[string]string{
	"fmt.Print": "Print", "fmt.Printf": "Printf", "fmt.Println": "Println",
	"fmt.Fprint": "Fprint", "fmt.Fprintf": "Fprintf", "fmt.Fprintln": "Fprintln",
	"fmt.Sprint": "Sprint", "fmt.Sprintf": "Sprintf", "fmt.Sprintln": "Sprintln",
	"fmt.Scan": "Scan", "fmt.Scanf": "Scanf", "fmt.Scanln": "Scanln",
	"runtime.Caller": "Caller", "runtime.Callers": "Callers",
	"os.Exit": "Exit", "log.Fatal": "Fatal", "log.Fatalf": "Fatalf", "log.Fatalln": "Fatalln",
}
