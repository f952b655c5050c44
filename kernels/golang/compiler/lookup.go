package compiler

import (
	"go/token"
	"go/types"
	"strings"
)

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
