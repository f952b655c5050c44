package compiler

import (
	"fmt"
	"sort"
	"strings"
)

// edit puts a text in the place of a cell's text from one offset to another.
type edit struct {
	from, to int
	text     string
	seq      int
}

// edits are changes of a cell's text. Of edits at one offset those come first that were
// added first; an edit within a piece that another replaces is dropped.
type edits struct {
	list []edit
}

func (e *edits) replace(from, to int, text string) {
	e.list = append(e.list, edit{from, to, text, len(e.list)})
}

func (e *edits) insert(at int, text string) { e.replace(at, at, text) }

// sorted puts the edits in order, the longer of two that begin together first, and an
// insertion before a replacement.
func (e *edits) sort() {
	sort.Slice(e.list, func(i, j int) bool {
		a, b := e.list[i], e.list[j]
		if a.from != b.from {
			return a.from < b.from
		}
		if (a.to == a.from) != (b.to == b.from) {
			return a.to == a.from
		}
		if a.to != b.to && a.to != a.from {
			return a.to > b.to
		}
		return a.seq < b.seq
	})
}

// apply gives the text from one offset to another with the edits made, those at its end
// too. The edits have been sorted.
func (e *edits) apply(text string, from, to int) string { return e.make(text, from, to, true) }

func (e *edits) make(text string, from, to int, end bool) string {
	var b strings.Builder
	at := from
	i := sort.Search(len(e.list), func(i int) bool { return e.list[i].from >= from })
	for ; i < len(e.list); i++ {
		d := e.list[i]
		if d.from > to || d.to > to || d.from == to && (d.from != d.to || !end) {
			break
		}
		if d.from < at {
			continue
		}
		b.WriteString(text[at:d.from])
		b.WriteString(d.text)
		// Lines that are taken out are still counted.
		if n := strings.Count(text[d.from:d.to], "\n") - strings.Count(d.text, "\n"); n > 0 {
			b.WriteString(strings.Repeat("\n", n))
		}
		at = d.to
	}
	b.WriteString(text[at:to])
	return b.String()
}

// lineComment makes the compiler take what follows for a place of the cell.
func (c *cell) lineComment(off int) string {
	at := c.place(off)
	return fmt.Sprintf("/*line %s:%d:%d*/", at.name, at.line, at.column)
}
