package compiler

import (
	"go/token"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// Mark is the upper-case letter (LATIN CAPITAL LETTER REVERSED HALF H) before a name
	// of the user's that has to be exported. It is taken out of all that is shown.
	Mark = "\uA7F5"
	// own begins the names that no user's name can become: a user's marked name goes on
	// with a lower-case letter.
	own = Mark + "Q"
	// runtimeName is how a cell imports package live, runName its function.
	runtimeName = own + "R"
	runName     = own + "Run"
	doneName    = own + "Done"
	// old ends the name of an earlier cell's object where this cell declares that name
	// anew further down. It is no part of an identifier.
	old = "\u00B7old"
	// packageName is the name of each cell's package: main, as it is shown. A package
	// that is really named main would be taken for the plugin's own.
	packageName = "m" + Mark + "ain"

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
	return Mark + name
}

// Unmark takes the marks out of a text that is to be shown. A mark that begins no name
// stays.
func Unmark(s string) string {
	if !strings.Contains(s, Mark) {
		return s
	}
	var b strings.Builder
	for {
		i := strings.Index(s, Mark)
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i+len(Mark):]
		if r, _ := utf8.DecodeRuneInString(s); r != '_' && (!unicode.IsLetter(r) || unicode.IsUpper(r)) {
			b.WriteString(Mark)
		}
	}
}
