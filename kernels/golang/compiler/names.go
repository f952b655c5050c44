package compiler

import (
	"go/token"

	"github.com/cellard/cellard/kernels/golang/wire"
)

const (
	// mark is before a name of the user's that has to be exported.
	mark = wire.Mark
	// own begins the names that no user's name can become: a user's marked name goes on
	// with a lower-case letter.
	own = mark + "Q"
	// runtimeName is how a cell imports package live, runName its function.
	runtimeName = own + "R"
	runName     = own + "Run"
	doneName    = own + "Done"
	// old ends the name of an earlier cell's object where this cell declares that name
	// anew further down. It is no part of an identifier.
	old = "\u00B7old"
	// packageName is the name of each cell's package: main, as it is shown. A package
	// that is really named main would be taken for the plugin's own.
	packageName = "m" + mark + "ain"

	// RuntimePath is the import path of package live.
	RuntimePath = "github.com/cellard/cellard/kernels/golang/live"
	// PathPrefix begins the import paths of cells' packages.
	PathPrefix = "cell/c"
)

// exported is a user's name as it is emitted.
func exported(name string) string {
	if token.IsExported(name) || name == "_" {
		return name
	}
	return mark + name
}
