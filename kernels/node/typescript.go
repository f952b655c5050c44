package node

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// compiled is a cell in JavaScript, and the source map back to the TypeScript.
type compiled struct {
	code, sourceMap string
}

// compile strips the types of a cell and lowers what Node doesn't run: enums,
// namespaces, parameter properties, decorators. Nothing checks the types. Imports stay
// unless they say "type": one may be used only in a later cell.
func compile(file, code string) (compiled, []api.Message) {
	result := api.Transform(code, api.TransformOptions{
		Loader:         api.LoaderTS,
		Target:         api.ESNext,
		Supported:      map[string]bool{"decorators": false, "using": false},
		TsconfigRaw:    `{"compilerOptions":{"verbatimModuleSyntax":true,"useDefineForClassFields":true}}`,
		Sourcemap:      api.SourceMapExternal,
		SourcesContent: api.SourcesContentExclude,
		Sourcefile:     file,
		LogLimit:       20,
	})
	return compiled{string(result.Code), string(result.Map)}, result.Errors
}

// errNotPlain says that code isn't JavaScript, and that none of it has run.
var errNotPlain = errors.New("the cell isn't plain JavaScript")

// typed finds what could mean something else in TypeScript than in JavaScript although it
// is right in both: f<T>(x), a ? (b) : c => d, and the words that TypeScript begins
// declarations with. esbuild takes as long as all the rest of a small cell.
var typed = regexp.MustCompile(`[<@]|\b(?:abstract|accessor|as|asserts|class|declare|enum|export|global|import|interface|module|namespace|satisfies|type|using)\b`)

// plain tells whether code is the same in TypeScript as in JavaScript, if it is
// JavaScript at all, which Node's side finds out.
func plain(code string) bool {
	arrow := strings.Contains(code, "=>") && strings.Contains(code, "?")
	return !arrow && !typed.MatchString(code)
}

// syntaxError makes a cell's error of esbuild's.
func syntaxError(file string, messages []api.Message) *kernel.Error {
	e := &kernel.Error{Name: "SyntaxError", Value: messages[0].Text}
	for _, m := range messages {
		if l := m.Location; l != nil {
			column := min(l.Column, len(l.LineText))
			e.Traceback = append(e.Traceback, fmt.Sprintf("%s:%d", file, l.Line), l.LineText, blanks(l.LineText[:column])+"^")
		}
		e.Traceback = append(e.Traceback, "SyntaxError: "+m.Text)
	}
	return e
}

// blanks is as wide as text.
func blanks(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, text)
}

// completeness tells of TypeScript whether it can be run as it is.
func completeness(code string) kernel.Completeness {
	_, messages := compile("cell.ts", code)
	if len(messages) == 0 {
		return kernel.Completeness{Status: "complete"}
	}
	for _, m := range messages {
		if strings.Contains(m.Text, "end of file") || strings.HasPrefix(m.Text, "Unterminated string literal") && strings.Count(code, "`")%2 == 1 || strings.HasPrefix(m.Text, `Expected "*/"`) {
			last := code[strings.LastIndexByte(code, '\n')+1:]
			indent := last[:len(last)-len(strings.TrimLeft(last, " \t"))]
			if trimmed := strings.TrimRight(last, " \t"); strings.HasSuffix(trimmed, "{") || strings.HasSuffix(trimmed, "(") || strings.HasSuffix(trimmed, "[") {
				indent += "  "
			}
			return kernel.Completeness{Status: "incomplete", Indent: indent}
		}
	}
	return kernel.Completeness{Status: "invalid"}
}
