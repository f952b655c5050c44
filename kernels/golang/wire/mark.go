package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mark is the upper-case letter (LATIN CAPITAL LETTER REVERSED HALF H) before a name of
// the user's that has to be exported. It is taken out of all that is shown.
const Mark = "\uA7F5"

// Unmark takes the marks out of a text that is to be shown. A mark that begins no name
// stays.
func Unmark(s string) string {
	if !strings.Contains(s, Mark) {
		return s
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, Mark)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if r, _ := utf8.DecodeRuneInString(after); r != '_' && !unicode.IsLetter(r) {
			b.WriteString(Mark)
		}
		s = after
	}
}
