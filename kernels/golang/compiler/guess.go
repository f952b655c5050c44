package compiler

import (
	"go/ast"
	"go/token"
	"go/types"
)

// catalogue is an importer that knows which packages of the standard library there are.
type catalogue interface {
	// Named are the import paths whose last element is the name.
	Named(name string) []string
}

// selected are the names that stand before a dot, each with what stands behind it.
func (p *parsed) selected() map[string]map[string]bool {
	found := map[string]map[string]bool{}
	look := func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := s.X.(*ast.Ident); ok && token.IsExported(s.Sel.Name) {
			if found[id.Name] == nil {
				found[id.Name] = map[string]bool{}
			}
			found[id.Name][s.Sel.Name] = true
		}
		return true
	}
	for _, d := range p.decls {
		ast.Inspect(d, look)
	}
	for _, s := range p.body {
		ast.Inspect(s, look)
	}
	return found
}

// guess is the one package of the standard library that a name which nobody declares can
// stand for, by what is selected of it; "" for none or several.
func guess(imp types.Importer, name string, selected map[string]bool) (path string) {
	known, ok := imp.(catalogue)
	if !ok {
		return ""
	}
	for _, candidate := range known.Named(name) {
		pkg, err := imp.Import(candidate)
		if err != nil || pkg.Name() != name {
			continue
		}
		has := true
		for s := range selected {
			has = has && pkg.Scope().Lookup(s) != nil
		}
		switch {
		case !has:
		case path != "":
			return ""
		default:
			path = candidate
		}
	}
	return path
}
