package compiler

import (
	"go/scanner"
	"go/token"
	"go/types"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// maxMatches bounds an answer.
const maxMatches = 500

// IsComplete tells whether code can be run as it is, by Jupyter's words.
func (s *Session) IsComplete(code string) (status, indent string) {
	c, err := split("In[0]", code)
	if err == nil {
		_, err = c.parse()
	}
	list, _ := err.(*Errors)
	switch {
	case err == nil:
		return "complete", ""
	case list != nil && list.Incomplete:
		return "incomplete", strings.Repeat("\t", depthOf(code))
	}
	return "invalid", ""
}

// depthOf is how many braces are open at the end of a text.
func depthOf(code string) int {
	depth := 0
	c := &cell{name: "", text: code, lines: []int{0}}
	toks, err := c.scan()
	if err != nil {
		return 0
	}
	for _, t := range toks {
		switch t.tok {
		case token.LBRACE, token.LPAREN, token.LBRACK:
			depth++
		case token.RBRACE, token.RPAREN, token.RBRACK:
			depth--
		}
	}
	return max(0, min(depth, 20))
}

// wordAt is the dotted name that ends at a byte: its parts before the last dot, and the
// piece behind.
func wordAt(code string, at int) (path []string, piece string, start int) {
	at = max(0, min(at, len(code)))
	i := at
	for i > 0 {
		r, n := utf8.DecodeLastRuneInString(code[:i])
		if r != '.' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		i -= n
	}
	parts := strings.Split(code[i:at], ".")
	piece = parts[len(parts)-1]
	return parts[:len(parts)-1], piece, at - len(piece)
}

// Complete answers for a byte of code.
func (s *Session) Complete(code string, cursor int) wire.Completion {
	path, piece, start := wordAt(code, cursor)
	c := wire.Completion{Start: start, End: max(0, min(cursor, len(code)))}
	prefix := ""
	if len(path) > 0 {
		prefix = strings.Join(path, ".") + "."
	}
	c.Start -= len(prefix)
	found := map[string]string{}
	add := func(name, kind string) {
		if name != "" && name != "_" && strings.HasPrefix(name, piece) && !strings.Contains(name, old) {
			found[name] = kind
		}
	}
	if len(path) == 0 {
		s.names(code[:start]+" "+code[c.End:], add)
	} else {
		s.members(code, c.End, path, add)
	}
	for name := range found {
		c.Matches = append(c.Matches, name)
	}
	sort.Strings(c.Matches)
	c.Matches = c.Matches[:min(len(c.Matches), maxMatches)]
	for i, name := range c.Matches {
		c.Types = append(c.Types, found[name])
		c.Matches[i] = prefix + name
	}
	return c
}

// names are what a plain name can be: the live names, what this cell declares, the
// standard library's packages, the language's own words.
func (s *Session) names(code string, add func(name, kind string)) {
	for _, name := range types.Universe.Names() {
		add(name, kindOf(types.Universe.Lookup(name)))
	}
	for t := token.BREAK; t <= token.VAR; t++ {
		add(t.String(), "keyword")
	}
	add("display", "function")
	for path := range s.archives {
		if isStandard(path) {
			add(path[strings.LastIndex(path, "/")+1:], "module")
		}
	}
	var sc scanner.Scanner
	fset := token.NewFileSet()
	sc.Init(fset.AddFile("", -1, len(code)), []byte(code), func(token.Position, string) {}, 0)
	for {
		_, t, lit := sc.Scan()
		if t == token.EOF {
			break
		}
		if t == token.IDENT {
			add(lit, "instance")
		}
	}
	for name, l := range s.scope.names {
		if l.path != "" {
			add(name, "module")
		} else {
			add(name, kindOf(l.object))
		}
	}
}

func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && first != "vendor" && !strings.HasPrefix(path, PathPrefix) &&
		!strings.Contains("/"+path+"/", "/internal/")
}

// members are what can stand behind a dot.
func (s *Session) members(code string, cursor int, path []string, add func(name, kind string)) {
	o, t := s.lookupPath(code, cursor, path)
	if p, ok := o.(*types.PkgName); ok {
		for _, name := range p.Imported().Scope().Names() {
			if token.IsExported(name) {
				add(name, kindOf(p.Imported().Scope().Lookup(name)))
			}
		}
		return
	}
	if t == nil {
		return
	}
	set := types.NewMethodSet(pointerTo(t))
	for i := 0; i < set.Len(); i++ {
		if m := set.At(i).Obj(); m.Exported() || m.Pkg() != nil && m.Pkg().Path() == "main" {
			add(m.Name(), "method")
		}
	}
	fields(t, map[types.Type]bool{}, add)
}

func pointerTo(t types.Type) types.Type {
	if _, ok := t.Underlying().(*types.Pointer); ok || types.IsInterface(t) {
		return t
	}
	return types.NewPointer(t)
}

func fields(t types.Type, seen map[types.Type]bool, add func(name, kind string)) {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	st, ok := t.Underlying().(*types.Struct)
	if !ok || seen[t] {
		return
	}
	seen[t] = true
	for i := 0; i < st.NumFields(); i++ {
		f := st.Field(i)
		if f.Exported() || f.Pkg().Path() == "main" {
			add(f.Name(), "instance")
		}
		if f.Embedded() {
			fields(f.Type(), seen, add)
		}
	}
}
