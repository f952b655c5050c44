package compiler

import (
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// Error and Errors are what is wrong with a cell.
type (
	Error  = wire.Error
	Errors = wire.Errors
)

// maxErrors is how many errors of a cell are told.
const maxErrors = 10

// errorAt is one error at an offset of the cell's text.
func (c *cell) errorAt(off int, message string) *Errors {
	return &Errors{Cell: c.name, List: []Error{c.at(off, message)}}
}

func (c *cell) at(off int, message string) Error {
	off = max(c.begin, min(off, len(c.text)))
	from := c.lines[c.lineOf(off)]
	source := c.text[from:]
	if i := strings.IndexByte(source, '\n'); i >= 0 {
		source = source[:i]
	}
	return Error{Line: c.place(off).line, Column: utf8.RuneCountInString(c.text[from:off]) + 1, Message: wire.Unmark(message), Source: strings.TrimRight(source, "\r")}
}

// origin is a place in the text that a user wrote: that what is at an offset of a cell's
// text came from.
type origin struct {
	from         int
	name         string // In[3]
	line, column int    // from 1; in bytes
}

// place is where an offset is for the user.
func (c *cell) place(off int) origin {
	at := origin{name: c.name, line: 1, column: 1}
	for _, o := range c.origins {
		if o.from <= off {
			at = o
		}
	}
	line, first := c.lineOf(off), c.lineOf(at.from)
	at.line += line - first
	if line > first {
		at.column = off - c.lines[line] + 1
	} else {
		at.column += off - at.from
	}
	return at
}

// lineOf is the index of the line of the text that an offset is in.
func (c *cell) lineOf(off int) int { return sort.SearchInts(c.lines, off+1) - 1 }
