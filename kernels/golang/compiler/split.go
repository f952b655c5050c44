package compiler

import (
	"fmt"
	"go/scanner"
	"go/token"
	"strings"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// Limits of a cell's text: what is deeper or longer is refused, before a recursive
// parser or the compiler is given it.
const (
	maxCode  = 4 << 20
	maxDepth = 1000
	maxGets  = 50
)

// segment is a piece of a cell between semicolons at depth 0, its own included.
type segment struct {
	from, to int
	// end is where the segment ends without its semicolon.
	end  int
	kind segmentKind
}

type segmentKind int

const (
	statement segmentKind = iota
	declaration
	importing
)

// cell is a cell's text, split.
type cell struct {
	name string // In[3]
	text string
	// get has the arguments of the lines that ask for modules, in order.
	get      [][]string
	segments []segment
	// file: the cell began with a package clause, so that its variables are set in the
	// order in which they depend on each other.
	file bool
	// quiet: the cell ends with a semicolon of the user's, and so shows no result.
	quiet bool
	lines []int // the offset of each line
	// origins, if any, tell where the text is from; the cell's own begins at begin.
	origins []origin
	begin   int
}

// tok is a token with what the split needs of it.
type tok struct {
	off, end int
	tok      token.Token
	lit      string
}

// split parts a cell. The error is an *Errors.
func split(name, text string) (*cell, error) {
	c := &cell{name: name, text: text}
	c.lines = lineStarts(text)
	if len(text) > maxCode {
		return nil, c.errorAt(0, fmt.Sprintf("the cell has %d bytes: at most %d", len(text), maxCode))
	}
	if i := strings.Index(text, wire.Mark); i >= 0 {
		return nil, c.errorAt(i, "the letter "+wire.Mark+" is reserved for names of the kernel's: write \\uA7F5 in strings")
	}
	c.takeCommands()
	toks, err := c.scan()
	if err != nil {
		return nil, err
	}
	start, depth := 0, 0
	for i, t := range toks {
		switch t.tok {
		case token.LPAREN, token.LBRACE, token.LBRACK:
			depth++
			if depth > maxDepth {
				return nil, c.errorAt(t.off, "nested too deeply")
			}
		case token.RPAREN, token.RBRACE, token.RBRACK:
			depth--
			if depth < 0 {
				return nil, c.errorAt(t.off, "unexpected "+t.tok.String()+": it closes nothing")
			}
		case token.SEMICOLON:
			if depth > 0 {
				continue
			}
			if start < i {
				c.add(toks[start:i], t)
			}
			c.quiet = t.lit == ";" && i == len(toks)-1
			start = i + 1
		}
	}
	if depth > 0 {
		err := c.errorAt(len(text), "unexpected end of the cell: a bracket is not closed")
		err.Incomplete = true
		return nil, err
	}
	return c, nil
}

// scan gives the tokens, with a semicolon as the last one unless there are none.
func (c *cell) scan() ([]tok, error) {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(c.text))
	var failed *Errors
	var s scanner.Scanner
	s.Init(file, []byte(c.text), func(pos token.Position, msg string) {
		if failed == nil {
			failed = c.errorAt(pos.Offset, msg)
			failed.Incomplete = strings.Contains(msg, "not terminated") && !strings.Contains(msg, "rune")
			if strings.Contains(msg, "string literal not terminated") && !strings.Contains(msg, "raw") {
				failed.Incomplete = false
			}
		}
	}, scanner.ScanComments)
	var toks, comments []tok
	defer func() {
		for _, t := range comments {
			c.text = c.text[:t.off] + blank(c.text[t.off:t.end]) + c.text[t.end:]
		}
	}()
	for {
		pos, t, lit := s.Scan()
		off := file.Offset(pos)
		if t == token.COMMENT {
			if why := directive(lit); why != "" && failed == nil {
				failed = c.errorAt(off, why)
			}
			if strings.Contains(lit, "\n") {
				// It stands for a newline, and may stand across the end of a segment.
				comments = append(comments, tok{off: off, end: off + len(lit)})
			}
		}
		if failed != nil {
			return nil, failed
		}
		if t == token.COMMENT {
			continue
		}
		if t == token.EOF {
			if n := len(toks); n > 0 && toks[n-1].tok != token.SEMICOLON {
				toks = append(toks, tok{off, off, token.SEMICOLON, "\n"})
			}
			return toks, nil
		}
		end := off + len(lit)
		switch {
		case t == token.SEMICOLON && lit == "\n":
			end = min(off+1, len(c.text))
		case lit == "" || t.IsOperator():
			end = off + len(t.String())
		}
		toks = append(toks, tok{off, end, t, lit})
	}
}

// directive says why a comment that the toolchain would act on can't stand in a cell; ""
// for any other.
func directive(comment string) string {
	words := strings.Fields(comment)
	if len(words) < 2 {
		return ""
	}
	switch words[0] {
	case "//go:embed":
		return "go:embed can't be used in a cell, which is in no directory: read the file by os.ReadFile"
	case "//go:linkname":
		return "go:linkname can't be used in a cell"
	}
	return ""
}

// add makes a segment of the tokens before a semicolon.
func (c *cell) add(toks []tok, semicolon tok) {
	s := segment{from: toks[0].off, to: semicolon.end, end: semicolon.off}
	// An inserted semicolon stands at the end of its line, behind a comment.
	switch toks[0].tok {
	case token.PACKAGE:
		if len(c.segments) == 0 && !c.file {
			c.file = true
			return
		}
	case token.IMPORT:
		s.kind = importing
	case token.TYPE:
		s.kind = declaration
	case token.FUNC:
		if isDeclaredFunc(toks) {
			s.kind = declaration
		}
	case token.VAR, token.CONST:
		if c.file {
			s.kind = declaration
		}
	}
	c.segments = append(c.segments, s)
}

// isDeclaredFunc tells a function or method from a literal: a method's receiver is
// followed by a name and a parenthesis.
func isDeclaredFunc(toks []tok) bool {
	if len(toks) > 1 && toks[1].tok == token.IDENT {
		return true
	}
	if len(toks) < 2 || toks[1].tok != token.LPAREN {
		return false
	}
	depth := 0
	for i, t := range toks[1:] {
		switch t.tok {
		case token.LPAREN:
			depth++
		case token.RPAREN:
			depth--
		}
		if depth == 0 {
			rest := toks[1+i+1:]
			return len(rest) > 1 && rest[0].tok == token.IDENT &&
				(rest[1].tok == token.LPAREN || rest[1].tok == token.LBRACK && !closesAtOnce(rest[1:]))
		}
	}
	return false
}

// closesAtOnce tells [] from the type parameters of a method.
func closesAtOnce(toks []tok) bool { return len(toks) > 1 && toks[1].tok == token.RBRACK }

// takeCommands takes the lines that ask for modules out of the text: "%get X",
// "!go get X", "go get X". None of them is Go.
func (c *cell) takeCommands() {
	for _, from := range c.lines {
		line := c.text[from:]
		if i := strings.IndexByte(line, '\n'); i >= 0 {
			line = line[:i]
		}
		words := strings.Fields(line)
		var args []string
		switch {
		case len(words) > 1 && words[0] == "%get":
			args = words[1:]
		case len(words) > 2 && (words[0] == "go" || words[0] == "!go") && words[1] == "get":
			args = words[2:]
		default:
			continue
		}
		if len(c.get) == maxGets || !c.outside(from) {
			continue
		}
		c.get = append(c.get, args)
		c.text = c.text[:from] + blank(line) + c.text[from+len(line):]
	}
}

// outside tells whether an offset is in no raw string and no comment of several lines.
func (c *cell) outside(off int) bool {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(c.text))
	var s scanner.Scanner
	s.Init(file, []byte(c.text), func(token.Position, string) {}, scanner.ScanComments)
	for {
		pos, t, lit := s.Scan()
		at := file.Offset(pos)
		switch {
		case t == token.EOF || at >= off:
			return true
		case (t == token.STRING || t == token.COMMENT) && at+len(lit) > off && strings.Contains(lit, "\n"):
			return false
		}
	}
}

// part is the text with all but the segments of some kinds blanked, so that offsets
// stay.
func (c *cell) part(kinds ...segmentKind) string {
	b := []byte(blank(c.text))
	for _, s := range c.segments {
		for _, k := range kinds {
			if s.kind == k {
				copy(b[s.from:s.to], c.text[s.from:s.to])
			}
		}
	}
	return string(b)
}

func blank(s string) string {
	b := []byte(s)
	for i, ch := range b {
		if ch != '\n' {
			b[i] = ' '
		}
	}
	return string(b)
}

func lineStarts(s string) []int {
	lines := []int{0}
	for i := 0; i < len(s); i++ {
		if s[i] == '\n' {
			lines = append(lines, i+1)
		}
	}
	return lines
}
