package compiler

import "go/types"

// aliasArgs are the type arguments of a generic alias, which go/types knows from Go
// 1.23 on.
func aliasArgs(t *types.Alias) *types.TypeList {
	if g, ok := any(t).(interface{ TypeArgs() *types.TypeList }); ok {
		return g.TypeArgs()
	}
	return nil
}
