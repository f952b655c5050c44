package mime

import "strings"

const (
	esc = '\x1b'
	// maxEscape bounds an escape sequence in bytes. An OSC may hold a hyperlink's
	// URL; what is longer is taken for text that follows a stray escape.
	maxEscape = 4096
)

// StripANSI returns s without its escape sequences (ECMA-48: CSI, as colours
// are; OSC, as hyperlinks and titles are, whose visible text stays; DCS, SOS, PM
// and APC; and the two- and three-byte ones). An escape that begins none is
// dropped alone.
func StripANSI(s string) string {
	i := strings.IndexByte(s, esc)
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i >= 0 {
		b.WriteString(s[:i])
		n, _ := escape(s[i:])
		s = s[i+n:]
		i = strings.IndexByte(s, esc)
	}
	b.WriteString(s)
	return b.String()
}

// escape measures the escape sequence that s, which begins with ESC, begins
// with: its length in bytes, at least 1, and whether it is whole. One that is
// not whole could become so with more text. A malformed one ends before the
// byte that can't belong to it.
func escape(s string) (n int, whole bool) {
	if len(s) < 2 {
		return len(s), false
	}
	switch c := s[1]; {
	case c == '[':
		return escapeCSI(s)
	case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
		return escapeString(s)
	case c >= 0x20 && c <= 0x2f: // intermediates, then a final: ESC ( B
		for i := 2; i < len(s) && i < maxEscape; i++ {
			if s[i] >= 0x30 && s[i] <= 0x7e {
				return i + 1, true
			}
			if s[i] < 0x20 || s[i] > 0x2f {
				return i, true
			}
		}
		return unfinished(s, 2)
	case c >= 0x30 && c <= 0x7e:
		return 2, true
	}
	return 1, true
}

// escapeCSI: ESC [, parameters 30–3F, intermediates 20–2F, a final 40–7E.
func escapeCSI(s string) (int, bool) {
	for i := 2; i < len(s) && i < maxEscape; i++ {
		switch c := s[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1, true
		case c < 0x20 || c > 0x3f:
			return i, true
		}
	}
	return unfinished(s, 2)
}

// escapeString: ESC ] and the like, a text without control characters, then BEL
// or ESC \. One that is broken off is two bytes long: the text after it is shown.
func escapeString(s string) (int, bool) {
	for i := 2; i < len(s) && i < maxEscape; i++ {
		switch c := s[i]; {
		case c == '\a':
			return i + 1, true
		case c == esc && i+1 == len(s):
			return unfinished(s, 2)
		case c == esc && s[i+1] == '\\':
			return i + 2, true
		case c < 0x20:
			return 2, true
		}
	}
	return unfinished(s, 2)
}

// unfinished is the measure of a sequence whose end is not in s: still open, or
// given up on at maxEscape, where its first head bytes are the sequence.
func unfinished(s string, head int) (int, bool) {
	if len(s) >= maxEscape {
		return head, true
	}
	return len(s), false
}
