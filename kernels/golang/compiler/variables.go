package compiler

import (
	"go/types"
	"slices"
	"strings"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// Variables are the variables that the next cell would see.
func (r *Rewriter) Variables() *wire.Variables {
	found := &wire.Variables{}
	var names []string
	for name, l := range r.scope.names {
		if v, ok := l.object.(*types.Var); ok && r.cells[v.Pkg()] != nil {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, strings.Compare)
	found.Total = len(names)
	for _, name := range names[:min(len(names), wire.MaxVariables)] {
		m := r.cells[r.scope.names[name].object.Pkg()]
		if i := slices.Index(m.objects, name); i >= 0 {
			found.List = append(found.List, wire.Place{Name: name, Cell: m.number, Index: i})
		}
	}
	return found
}
