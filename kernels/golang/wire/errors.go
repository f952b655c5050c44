package wire

import (
	"fmt"
	"strings"
)

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
