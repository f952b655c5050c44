package bash

import "strings"

// The bounds of the words that are kept: how many, of how many bytes each, and how much of
// a cell is read for them.
const (
	maxWords     = 10_000
	maxWord      = 128
	maxWordsText = 1 << 20
)

// words are what in cells' texts can be names of variables, the oldest first: the shell
// takes the square of their number to list its variables, and a moment to tell of a name
// whether it is one.
type words struct {
	order []string
	has   map[string]bool
}

func (w *words) add(code string) {
	if w.has == nil {
		w.has = map[string]bool{}
	}
	code = code[:min(len(code), maxWordsText)]
	letter := func(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
	for i := 0; i < len(code); {
		begin := i
		for i < len(code) && (letter(code[i]) || code[i] >= '0' && code[i] <= '9') {
			i++
		}
		word := code[begin:i]
		if i == begin {
			i++
		} else if letter(word[0]) && len(word) <= maxWord && !w.has[word] {
			word = strings.Clone(word)
			w.has[word], w.order = true, append(w.order, word)
		}
	}
	if over := len(w.order) - maxWords; over > 0 {
		for _, word := range w.order[:over] {
			delete(w.has, word)
		}
		w.order = append([]string(nil), w.order[over:]...)
	}
}
