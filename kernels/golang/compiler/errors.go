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
	off = max(0, min(off, len(c.text)))
	line := sort.SearchInts(c.lines, off+1) - 1
	from := c.lines[line]
	source := c.text[from:]
	if i := strings.IndexByte(source, '\n'); i >= 0 {
		source = source[:i]
	}
	return Error{Line: line + 1, Column: utf8.RuneCountInString(c.text[from:off]) + 1, Message: wire.Unmark(message), Source: strings.TrimRight(source, "\r")}
}

// line is the line, from 1, that an offset is in.
func (c *cell) line(off int) (line, column int) {
	i := sort.SearchInts(c.lines, off+1) - 1
	return i + 1, off - c.lines[i] + 1
}
