package compiler

import (
	"go/types"
	"strconv"
	"strings"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// Rewriter makes Go packages of cells. It holds what is alive, and runs nothing. Its
// methods are called one at a time.
type Rewriter struct {
	language string
	importer types.Importer
	scope    scope
	cells    map[*types.Package]*made
	number   int                   // of the last attempt
	inUse    map[types.Object]bool // what statements have named
}

// NewRewriter returns a Rewriter for a version of the language (go1.26) in which nothing
// is declared.
func NewRewriter(importer types.Importer, language string) *Rewriter {
	return &Rewriter{language: language, importer: importer, scope: scope{names: map[string]live{}}, cells: map[*types.Package]*made{}, inUse: map[types.Object]bool{}}
}

// Rewrite gives the text of a cell's package, and the number that Commit is given when
// the cell has run. The error is an *Errors.
func (r *Rewriter) Rewrite(name, code string) (text string, number int, err error) {
	split, err := split(name, code)
	if err != nil {
		return "", 0, err
	}
	parsed, err := split.parse()
	if err != nil {
		return "", 0, err
	}
	m, _, text, err := r.rewrite(parsed)
	if err != nil {
		return "", 0, err
	}
	r.keep(m)
	return text, m.number, nil
}

// keep keeps a cell.
func (r *Rewriter) keep(m *made) {
	r.cells[m.pkg] = m
	for o := range m.used {
		r.inUse[o] = true
	}
}

// lasts tells whether a cell that declares nothing means something to those after it:
// names of packages, or what it is the first to use.
func (r *Rewriter) lasts(m *made) bool {
	for o := range m.used {
		if _, isPackage := o.(*types.PkgName); !isPackage && o.Pkg() != nil && !r.inUse[o] {
			return true
		}
	}
	for name, path := range m.imports {
		if r.scope.names[name].path != path {
			return true
		}
	}
	for _, path := range m.dots {
		if !contains(r.scope.dots, path) {
			return true
		}
	}
	return false
}

// rewrite does not keep the cell: it may still fail to compile.
func (r *Rewriter) rewrite(p *parsed) (*made, *checked, string, error) {
	m, checked, err := r.check(p)
	if err != nil {
		return nil, nil, "", err
	}
	text, err := checked.emit(r.cells, m)
	return m, checked, text, err
}

// check checks a cell.
func (r *Rewriter) check(p *parsed) (*made, *checked, error) {
	if q := r.again(p); q != nil {
		p = q
	}
	checked, err := p.check(&r.scope, r.importer, r.language)
	if err != nil {
		return nil, nil, err
	}
	r.number++
	m := &made{number: r.number, path: PathPrefix + strconv.Itoa(r.number), pkg: checked.pkg,
		imports: checked.importNames(), dots: checked.dots}
	checked.remember(m)
	return m, checked, nil
}

// Direct is Rewrite for a cell that needs no compiler; the program is nil for another.
func (r *Rewriter) Direct(name, code string) (*wire.Program, error) {
	split, err := split(name, code)
	if err != nil {
		return nil, err
	}
	parsed, err := split.parse()
	if err != nil {
		return nil, err
	}
	_, checked, err := r.check(parsed)
	if err != nil {
		return nil, err
	}
	return checked.direct(r.cells), nil
}

// Commit makes the names of a cell that ran count; of its variables those whose
// declaration was reached, by done.
func (r *Rewriter) Commit(number, done int) {
	for _, m := range r.cells {
		if m.number == number {
			r.scope.commit(m, done)
		}
	}
}

// importNames are the names for packages that the cell brings to the cells after it.
func (c *checked) importNames() map[string]string {
	names := map[string]string{}
	for name, path := range c.imports {
		names[name] = path
	}
	for _, o := range c.info.Implicits {
		if p, ok := o.(*types.PkgName); ok {
			names[p.Name()] = p.Imported().Path()
		}
	}
	for name := range names {
		if strings.HasSuffix(name, old) {
			delete(names, name)
		}
	}
	return names
}
