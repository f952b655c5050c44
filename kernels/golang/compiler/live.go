package compiler

import (
	"go/ast"
	"go/token"
	"go/types"
)

// live is what a name means to the next cell: an object of an earlier cell, or an
// import.
type live struct {
	object types.Object
	path   string // of an import
}

// made is a cell that was compiled.
type made struct {
	number int
	path   string
	pkg    *types.Package
	// names are what it declares at package level, with how many of the declarations
	// in its body must have run; 0 for types, functions, constants.
	names map[string]int
	// objects are the variables and functions that it registers with the worker, in order.
	objects []string
	// imports are its names for packages.
	imports map[string]string
	dots    []string
	// sources are its declarations, used what its statements name.
	sources []source
	used    map[types.Object]bool
}

// scope is what a cell sees of the cells before it.
type scope struct {
	names map[string]live
	dots  []string // packages imported without a qualifier
}

// commit makes a cell's names those that count. Of its variables those whose
// declaration has run, by done, count.
func (s *scope) commit(m *made, done int) {
	for name, path := range m.imports {
		s.names[name] = live{path: path}
	}
	for name, need := range m.names {
		if need <= done {
			s.names[name] = live{object: m.pkg.Scope().Lookup(name)}
		}
	}
	for _, path := range m.dots {
		if !contains(s.dots, path) {
			s.dots = append(s.dots, path)
		}
	}
}

// used are the names that stand in some syntax, whatever they mean there.
func used(nodes ...ast.Node) map[string]bool {
	names := map[string]bool{}
	for _, n := range nodes {
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				names[id.Name] = true
			}
			return true
		})
	}
	return names
}

// displayFunc is the object behind the name display.
func displayFunc(pkg *types.Package) types.Object {
	empty := types.NewInterfaceType(nil, nil)
	values := types.NewTuple(types.NewParam(token.NoPos, pkg, "values", types.NewSlice(empty)))
	return types.NewFunc(token.NoPos, pkg, "display", types.NewSignatureType(nil, nil, nil, values, nil, true))
}

func contains(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}
