package compiler

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// maxErrors is how many errors of a cell are told.
const maxErrors = 10

// Error is an error in a cell's text. Line and Column count from 1, Column in code
// points.
type Error struct {
	Line, Column int
	Message      string
	// Source is the line that it is in.
	Source string
}

// Errors is what is wrong with a cell.
type Errors struct {
	Cell string // In[3]
	List []Error
	// Incomplete: more text could mend it.
	Incomplete bool
}

func (e *Errors) Error() string {
	var b strings.Builder
	for i, one := range e.List {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s", e.Cell, one.Line, one.Column, one.Message)
	}
	return b.String()
}

// Traceback shows each error with its line and a mark under its column.
func (e *Errors) Traceback() []string {
	var lines []string
	for _, one := range e.List {
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", e.Cell, one.Line, one.Column, one.Message))
		if one.Source == "" || len(one.Source) > 400 {
			continue
		}
		var under strings.Builder
		n := 1
		for _, r := range one.Source {
			if n >= one.Column {
				break
			}
			if r == '\t' {
				under.WriteByte('\t')
			} else {
				under.WriteByte(' ')
			}
			n++
		}
		lines = append(lines, "    "+one.Source, "    "+under.String()+"^")
	}
	return lines
}

// errorAt is one error at an offset of the cell's text.
func (c *cell) errorAt(off int, message string) *Errors {
	return &Errors{Cell: c.name, List: []Error{c.at(off, message)}}
}

func (c *cell) at(off int, message string) Error {
	off = max(0, min(off, len(c.text)))
	line := sort.SearchInts(c.lines, off+1) - 1
	from := c.lines[line]
	source := c.text[from:]
	if i := strings.IndexByte(source, '\n'); i >= 0 {
		source = source[:i]
	}
	return Error{Line: line + 1, Column: utf8.RuneCountInString(c.text[from:off]) + 1, Message: Unmark(message), Source: strings.TrimRight(source, "\r")}
}

// line is the line, from 1, that an offset is in.
func (c *cell) line(off int) (line, column int) {
	i := sort.SearchInts(c.lines, off+1) - 1
	return i + 1, off - c.lines[i] + 1
}
