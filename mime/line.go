package mime

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// line is one line of a terminal: cells and a cursor.
type line struct {
	cells  []cell
	cursor int    // may lie past the end: a write there fills up with spaces
	clean  bool   // no colours are on where the line starts
	style  string // the colours (SGR sequences) set in this line since the last reset
	attr   *attr  // of a cell written in this style; made when needed
	marks  string // other sequences, which go before the next cell written
	size   int    // at least the length of the line's text
}

// cell is one character of a line. Wide and combining ones take one cell as any
// other: a bar is redrawn whole, so its columns need only agree among themselves.
type cell struct {
	r    rune
	attr *attr
}

type attr struct{ style, marks string }

// maxStyle bounds the colours that add up without a reset, in bytes.
const maxStyle = 256

const reset = "\x1b[0m"

type lineState int

const (
	lineOpen  lineState = iota // all is taken but the beginning of an escape sequence
	lineEnded                  // at its \n
	lineFull                   // too long
)

func (l *line) start(clean bool) {
	*l = line{cells: l.cells[:0], clean: clean}
}

// write takes text until the line ends, and returns how much it took.
func (l *line) write(text string) (int, lineState) {
	for pos := 0; pos < len(text); {
		switch c := text[pos]; c {
		case '\n':
			return pos, lineEnded
		case '\r':
			l.cursor = 0
			pos++
		case '\b':
			l.cursor = max(l.cursor-1, 0)
			pos++
		case esc:
			n, whole := escape(text[pos:])
			if !whole {
				return pos, lineOpen
			}
			l.sequence(text[pos : pos+n])
			pos += n
		default:
			pos += l.put(text[pos:])
		}
		if l.size > maxLine {
			// Much of size may have been overwritten.
			if l.size = l.length(); l.size > maxLine/2 {
				return pos, lineFull
			}
		}
	}
	return len(text), lineOpen
}

// put writes the characters that text begins with, up to the next that acts or
// as far as there is room, and returns their length.
func (l *line) put(text string) int {
	for l.cursor > len(l.cells) {
		l.cells = append(l.cells, cell{r: ' '})
		l.size++
	}
	if l.size > maxLine {
		return 0
	}
	if l.attr == nil && l.style != "" {
		l.attr = &attr{style: l.style}
	}
	a := l.attr
	if l.marks != "" {
		a = &attr{style: l.style, marks: l.marks}
		l.marks = ""
	}
	pos := 0
	for pos < len(text) && l.size <= maxLine {
		r, n := rune(text[pos]), 1
		if r == '\n' || r == '\r' || r == '\b' || r == esc {
			break
		}
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[pos:])
		}
		if l.cursor == len(l.cells) {
			l.cells = append(l.cells, cell{r, a})
		} else {
			l.cells[l.cursor] = cell{r, a}
		}
		a = l.attr
		l.cursor++
		l.size += n
		pos += n
	}
	return pos
}

// sequence obeys an escape sequence that acts within the line, and keeps others.
func (l *line) sequence(s string) {
	final := s[len(s)-1]
	switch {
	case broken(s):
		return // it must not join with what follows
	case s[1] != '[' || strings.IndexByte("mKCDG", final) < 0:
		l.mark(s)
		return
	}
	arg := s[2 : len(s)-1]
	if final == 'm' {
		l.colour(s, arg)
		return
	}
	n := 0
	if arg != "" {
		var err error
		if n, err = strconv.Atoi(arg); err != nil || n < 0 {
			l.mark(s)
			return
		}
	}
	step := min(max(n, 1), maxLine) // no line is longer
	switch final {
	case 'K':
		l.erase(n)
	case 'C':
		l.cursor = min(l.cursor+step, maxLine)
	case 'D':
		l.cursor = max(l.cursor-step, 0)
	case 'G':
		l.cursor = step - 1
	}
}

// broken reports whether an escape sequence lacks its end.
func broken(s string) bool {
	final := s[len(s)-1]
	switch {
	case len(s) == 1:
		return true
	case s[1] == '[':
		return len(s) == 2 || final < 0x40
	case strings.IndexByte("]PX^_", s[1]) >= 0:
		return len(s) == 2
	}
	return final < 0x30
}

// erase is EL: from the cursor to the end, from the start to the cursor, or all.
// The cursor stays.
func (l *line) erase(n int) {
	switch n {
	case 0:
		l.cells = l.cells[:min(l.cursor, len(l.cells))]
	case 1:
		for i := 0; i <= l.cursor && i < len(l.cells); i++ {
			l.cells[i] = cell{r: ' '}
		}
	case 2:
		l.cells = l.cells[:0]
	}
}

func (l *line) mark(s string) {
	if len(l.marks)+len(s) <= maxEscape {
		l.marks += s
		l.size += len(s)
	}
}

// colour adds an SGR sequence to the style, which a reset begins anew.
func (l *line) colour(s, arg string) {
	l.attr = nil
	none := reset
	if l.clean {
		none = ""
	}
	switch {
	case strings.Trim(arg, "0") == "":
		l.style = none
		return
	case len(s)+len(none) > maxStyle:
		return // no terminal takes so many parameters
	case strings.HasPrefix(arg, "0;") || len(l.style)+len(s) > maxStyle:
		l.style = none
	}
	l.style += s
	l.size += len(s)
}

// render appends the line's text to out.
func (l *line) render(out *strings.Builder) {
	style := ""
	for _, c := range l.cells {
		to := ""
		if c.attr != nil {
			out.WriteString(c.attr.marks)
			to = c.attr.style
		}
		if to != style {
			restyle(style, to, out)
			style = to
		}
		out.WriteRune(c.r)
	}
	out.WriteString(l.marks)
	restyle(style, l.style, out)
}

func (l *line) length() int {
	var b strings.Builder
	l.render(&b)
	return b.Len()
}

// restyle goes from one style to another. The empty one is what was on where the
// line starts; after another it can only be had as none, so where that is not
// the same a reset is kept as a style of its own.
func restyle(from, to string, out *strings.Builder) {
	switch added, ok := strings.CutPrefix(to, from); {
	case ok:
		out.WriteString(added)
	case strings.HasPrefix(to, reset):
		out.WriteString(to)
	default:
		out.WriteString(reset)
		out.WriteString(to)
	}
}
