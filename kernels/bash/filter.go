package bash

import (
	"strings"
	"sync/atomic"
)

// marker is the first character of PS4, which bash repeats for each level of nesting: by
// it the lines of set -x are known, and the levels of the kernel's own loop, which grow
// with each handover, can be taken away.
const marker = 0x1e

// lostTrap is what bash 5.2 says of a trap that it runs as it begins with a command substitution:
// it takes the trap's text for that. The signal that stops a cell is sent again.
const lostTrap = ": trap: line 2: unexpected EOF while looking for matching `)'\n"

// filter makes of a cell's stderr what a script of its own would have put out: a "+" a
// level before each line of set -x, and bash's name in its messages where the path of
// the cell's code would stand. Of a cell that is stopped it takes lostTrap away.
type filter struct {
	level    int    // how many markers are one "+"
	path     string // of the code
	carry    string
	stopping atomic.Bool
}

// text filters the next piece. Where what is at its end may go on, that is held back,
// until end.
func (f *filter) text(s string, end bool) string {
	s = f.carry + s
	f.carry = ""
	if !end {
		if n := f.unfinished(s); n > 0 {
			s, f.carry = s[:len(s)-n], s[len(s)-n:]
		}
	}
	if f.stopping.Load() {
		s = strings.ReplaceAll(s, f.path+lostTrap, "")
	}
	s = strings.ReplaceAll(s, f.path, "bash")
	if strings.IndexByte(s, marker) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != marker {
			n := strings.IndexByte(s[i:], marker)
			if n < 0 {
				n = len(s) - i
			}
			b.WriteString(s[i : i+n])
			i += n
			continue
		}
		n := 0
		for i+n < len(s) && s[i+n] == marker {
			n++
		}
		b.WriteString(strings.Repeat("+", max(1, n-f.level+1)))
		i += n
	}
	return b.String()
}

// unfinished is how long the end of s is that may go on: markers, or a beginning of the
// path, or of lostTrap after it.
func (f *filter) unfinished(s string) int {
	n := 0
	for n < len(s) && s[len(s)-1-n] == marker {
		n++
	}
	if n > 0 {
		return n
	}
	whole := f.path
	if f.stopping.Load() {
		whole += lostTrap
	}
	for n = min(len(whole)-1, len(s)); n > 0; n-- {
		if strings.HasSuffix(s, whole[:n]) {
			return n
		}
	}
	return 0
}
