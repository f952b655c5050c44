// Package drawing draws an execution's values for a terminal.
package drawing

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"

	"github.com/cellard/cellard/mime"
)

const (
	maxTableRows = 30 // drawn; the rest is counted
	maxCellWidth = 40
)

// Table draws a table for a terminal so wide: labels, then columns, numbers to the
// right. Columns that don't fit are left out, and counted.
func Table(t mime.Table, columns int) string {
	head := append([]string(nil), t.Columns...)
	right := make([]bool, len(head))
	for i := range head {
		right[i] = i < len(t.Types) && (t.Types[i] == "integer" || t.Types[i] == "number")
	}
	shown := t.Rows[:min(len(t.Rows), maxTableRows)]
	rows := make([][]string, len(shown))
	for i, r := range shown {
		for j := range head {
			s := ""
			if j < len(r) {
				s = Text(r[j])
			}
			rows[i] = append(rows[i], s)
		}
	}
	if index, ok := t.Index.([]any); ok && len(index) >= len(rows) {
		head, right = append([]string{""}, head...), append([]bool{false}, right...)
		for i := range rows {
			rows[i] = append([]string{Text(index[i])}, rows[i]...)
		}
	}
	for i := range head {
		head[i] = Text(head[i])
	}
	widths := make([]int, len(head))
	for _, r := range append([][]string{head}, rows...) {
		for i, s := range r {
			widths[i] = max(widths[i], runewidth.StringWidth(s))
		}
	}
	fit, total := 0, 0
	for fit < len(widths) && (fit == 0 || total+widths[fit] <= columns) {
		total += widths[fit] + 2
		fit++
	}
	var b strings.Builder
	line := func(cells []string) {
		var l strings.Builder
		for i, s := range cells[:fit] {
			pad := strings.Repeat(" ", widths[i]-runewidth.StringWidth(s))
			if right[i] {
				s = pad + s
			} else {
				s += pad
			}
			l.WriteString(s + "  ")
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	line(head)
	rule := make([]string, len(widths))
	for i, w := range widths {
		rule[i] = strings.Repeat("─", w)
	}
	line(rule)
	for _, r := range rows {
		line(r)
	}
	var more []string
	if t.RowCount > int64(len(rows)) {
		more = append(more, fmt.Sprintf("%d rows in all", t.RowCount))
	}
	if fit < len(widths) {
		more = append(more, fmt.Sprintf("%d more columns", len(widths)-fit))
	} else if t.Truncated && len(more) == 0 {
		more = append(more, "more columns")
	}
	if more != nil {
		b.WriteString("… " + strings.Join(more, ", ") + "\n")
	}
	return b.String()
}

// Text is a value in a line, without what a terminal would take for a command.
func Text(v any) string {
	s := fmt.Sprint(v)
	switch v := v.(type) {
	case nil:
		s = "–"
	case float64:
		s = strconv.FormatFloat(v, 'f', -1, 64)
	case []any: // a label in levels
		var parts []string
		for _, p := range v {
			parts = append(parts, Text(p))
		}
		s = strings.Join(parts, " / ")
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	if runewidth.StringWidth(s) <= maxCellWidth {
		return s
	}
	return runewidth.Truncate(s, maxCellWidth, "…")
}
