package compiler

import (
	"go/ast"
	"go/token"
	"go/types"
	"sort"
	"strings"
)

// A method of an earlier cell's type can only be had by a new type, so that type is
// declared again with it, and with it all declarations that name the type. As long as
// nothing but declarations has named it there are no values of the old one, and nobody
// can tell; from then on such a method is refused.

// source is a declaration that can be made again: of types, constants, or a function.
type source struct {
	place    origin // of its text in the cell that the user wrote it in
	text     string
	declares []types.Object
	// receiver and method are of a method.
	receiver types.Object
	method   string
	// uses are the names in it that are declared outside of it.
	uses map[string]types.Object
}

// remember notes in m the cell's declarations, and what its statements use.
func (c *checked) remember(m *made) {
	m.used = map[types.Object]bool{}
	run := func(n ast.Node) {
		for _, o := range c.outer(n) {
			m.used[o] = true
		}
	}
	for _, d := range c.decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			switch {
			case d.Recv != nil:
				if base := baseName(d.Recv); base != nil {
					c.source(m, d, source{receiver: c.original(base), method: d.Name.Name})
				}
			case d.Name.Name == "init", d.Name.Name == "main":
				run(d)
			default:
				c.source(m, d, source{declares: []types.Object{c.info.Defs[d.Name]}})
			}
		case *ast.GenDecl:
			switch d.Tok {
			case token.TYPE, token.CONST:
				c.group(m, d, d)
			case token.VAR:
				run(d)
			}
		}
	}
	for _, h := range c.tops {
		if h.decl.Tok == token.CONST {
			c.group(m, h.decl, h.stmt)
		} else {
			run(h.decl)
		}
	}
	for _, s := range c.rest {
		run(s)
	}
}

// group notes a declaration of types or constants.
func (c *checked) group(m *made, d *ast.GenDecl, at ast.Node) {
	var s source
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.declares = append(s.declares, c.info.Defs[spec.Name])
		case *ast.ValueSpec:
			for _, id := range spec.Names {
				s.declares = append(s.declares, c.info.Defs[id])
			}
		}
	}
	c.source(m, at, s)
}

// source notes a declaration with its text, a segment.
func (c *checked) source(m *made, n ast.Node, s source) {
	off, ok := c.offset(n.Pos())
	if !ok {
		return
	}
	i := sort.Search(len(c.segments), func(i int) bool { return c.segments[i].to > off })
	if i == len(c.segments) || c.segments[i].from > off {
		return
	}
	seg := c.segments[i]
	s.place, s.text = c.place(seg.from), c.text[seg.from:seg.end]
	s.uses = c.outer(n)
	m.sources = append(m.sources, s)
}

// outer are the objects that a piece of syntax names and that are declared outside of
// functions, by their names.
func (c *checked) outer(n ast.Node) map[string]types.Object {
	found := map[string]types.Object{}
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			ast.Inspect(n.X, visit)
			return false
		case *ast.Ident:
			o := c.original(n)
			if o == nil || o == c.display {
				break
			}
			if _, isPackage := o.(*types.PkgName); isPackage || o.Pkg() == nil || o.Parent() == o.Pkg().Scope() {
				found[o.Name()] = o
			}
		}
		return true
	}
	ast.Inspect(n, visit)
	return found
}

// original is the object that a name means, of an earlier cell's under its own name.
func (c *checked) original(id *ast.Ident) types.Object {
	o := c.info.Uses[id]
	if first := c.originals[o]; first != nil {
		return first
	}
	return o
}

// baseName is the name of a receiver's type.
func baseName(recv *ast.FieldList) *ast.Ident {
	if len(recv.List) != 1 {
		return nil
	}
	t := recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.ParenExpr:
			t = x.X
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x
		default:
			return nil
		}
	}
}

// again is the cell with the declarations that its methods of earlier types need to be
// made again; nil where there is no such method, or it can't be had.
func (r *Rewriter) again(p *parsed) *parsed {
	own := p.topNames()
	set, replaced := map[types.Object]bool{}, map[string]bool{}
	for _, d := range p.decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
			base := baseName(f.Recv)
			if base == nil || own[base.Name] {
				continue
			}
			if t, ok := r.scope.names[base.Name].object.(*types.TypeName); ok && !t.IsAlias() {
				set[t] = true
				replaced[base.Name+"."+f.Name.Name] = true
			}
		}
	}
	if len(set) == 0 || p.file {
		return nil
	}
	cells := make([]*made, 0, len(r.cells))
	for _, m := range r.cells {
		cells = append(cells, m)
	}
	sort.Slice(cells, func(i, j int) bool { return cells[i].number < cells[j].number })
	spread(cells, set)
	for o := range set {
		if r.inUse[o] {
			return nil
		}
	}
	var list []source
	for _, m := range cells {
		for _, s := range m.sources {
			need, ok := r.needed(&s, set, own)
			if !ok {
				return nil
			}
			if need && !(s.receiver != nil && replaced[s.receiver.Name()+"."+s.method]) {
				list = append(list, s)
			}
		}
	}
	merged, err := p.cell.after(list)
	if err != nil {
		return nil
	}
	out, err := merged.parse()
	if err != nil {
		return nil
	}
	return out
}

// spread adds to the set all that is declared by what names something of it.
func spread(cells []*made, set map[types.Object]bool) {
	for grew := true; grew; {
		before := len(set)
		for _, m := range cells {
			for _, s := range m.sources {
				in := set[s.receiver]
				for _, o := range s.uses {
					in = in || set[o]
				}
				for _, o := range s.declares {
					in = in || set[o]
				}
				if !in {
					continue
				}
				for _, o := range s.declares {
					set[o] = true
				}
				if s.receiver != nil {
					set[s.receiver] = true
				}
			}
		}
		grew = len(set) > before
	}
}

// needed tells whether a declaration has to be made again. It can't be (false) where the
// names in it have come to mean something else.
func (r *Rewriter) needed(s *source, set map[types.Object]bool, own map[string]bool) (need, ok bool) {
	lives := func(o types.Object) bool { return o != nil && r.scope.names[o.Name()].object == o }
	if s.receiver != nil {
		need = set[s.receiver] && lives(s.receiver)
	}
	live := 0
	for _, o := range s.declares {
		if set[o] && lives(o) {
			need = true
			live++
		}
	}
	if !need {
		return false, true
	}
	for _, o := range s.declares {
		if own[o.Name()] || o.Name() != "_" && live < len(s.declares) && !lives(o) {
			return false, false
		}
	}
	for name, o := range s.uses {
		now := r.scope.names[name]
		switch p, isPackage := o.(*types.PkgName); {
		case own[name]:
			return false, false
		case isPackage:
			ok = now.object == nil && (now.path == "" || now.path == p.Imported().Path())
		case r.cells[o.Pkg()] != nil:
			ok = now.object == o
		default:
			ok = now.object == nil && now.path == ""
		}
		if !ok {
			return false, false
		}
	}
	return true, true
}

// after is the cell with declarations before its text.
func (c *cell) after(list []source) (*cell, error) {
	var b strings.Builder
	var origins []origin
	for _, s := range list {
		at := s.place
		at.from = b.Len()
		origins = append(origins, at)
		b.WriteString(s.text + "\n")
	}
	merged, err := split(c.name, b.String()+c.text)
	if err != nil {
		return nil, err
	}
	merged.get = nil // what was to be got has been
	merged.origins = append(origins, origin{from: b.Len(), name: c.name, line: 1, column: 1})
	merged.begin = b.Len()
	return merged, nil
}

// topNames are the names that the cell declares outside of functions.
func (p *parsed) topNames() map[string]bool {
	names := map[string]bool{}
	for _, d := range p.decls {
		addNames(d, names)
	}
	for _, s := range p.body {
		switch s := s.(type) {
		case *ast.DeclStmt:
			addNames(s.Decl, names)
		case *ast.AssignStmt:
			for _, l := range s.Lhs {
				if id, ok := l.(*ast.Ident); ok && s.Tok == token.DEFINE {
					names[id.Name] = true
				}
			}
		}
	}
	return names
}
