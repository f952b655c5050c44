package jupyter

import (
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// highBits marks, in eight bytes at once, those outside ASCII.
const highBits = 0x8080808080808080

// plainSpan is how many bytes from the beginning are an ordinary part of a
// string: no quote, no backslash, no control character, and with stop highBits
// nothing outside ASCII. It takes eight at a time, for strings here are as long as
// an image.
func plainSpan(b []byte, stop uint64) int {
	const ones = 0x0101010101010101
	i := 0
	for ; i+8 <= len(b); i += 8 {
		// A byte's high bit becomes set in hit where it is one of those. It may be
		// set for a byte after such a one too, never without one before it.
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		hit := (x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash
		if hit&highBits != 0 || x&stop != 0 {
			break
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' || c == '"' || c == '\\' || uint64(c)&stop != 0 {
			break
		}
	}
	return i
}

// escape reads an escape sequence, whose backslash is next, and returns its rune
// and its length.
func (s *scanner) escape() (r rune, n int, err error) {
	s.ensure(lookahead)
	if r, n = unescape(s.buf[s.p:]); n == 0 {
		err = s.fail("an escape sequence")
	}
	return r, n, err
}

// unescape is the rune and the length of the escape sequence that b begins with,
// length 0 if it doesn't. A surrogate without its other half is U+FFFD.
func unescape(b []byte) (rune, int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r := hex4(b)
		switch {
		case r < 0:
			return 0, 0
		case !utf16.IsSurrogate(r):
			return r, 6
		case len(b) >= lookahead && b[6] == '\\' && b[7] == 'u':
			if pair := utf16.DecodeRune(r, hex4(b[6:])); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	}
	return 0, 0
}

// hex4 is the value of the four digits after \u, or -1.
func hex4(b []byte) rune {
	if len(b) < 6 {
		return -1
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// textReader reads what a JSON string says.
type textReader struct {
	s    scanner
	in   bool   // the opening quote is behind
	rest []byte // of a rune that the last Read had no room for
	rune [utf8.UTFMax]byte
	err  error
}

func (t *textReader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(t.rest) > 0 {
			c := copy(p[n:], t.rest)
			t.rest = t.rest[c:]
			n += c
			continue
		}
		if t.err != nil {
			break
		}
		n += t.step(p[n:])
	}
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, t.err
}

// step reads the next piece: a run of ASCII, or one rune.
func (t *textReader) step(dst []byte) int {
	s := &t.s
	if !t.in {
		if s.space() != '"' {
			t.err = s.fail("a string")
			return 0
		}
		s.p++
		t.in = true
	}
	b := s.buf[s.p:]
	if n := plainSpan(b[:min(len(b), len(dst))], highBits); n > 0 {
		s.p += n
		return copy(dst, b[:n])
	}
	if n := t.runes(dst); n > 0 {
		return n
	}
	switch c := s.peek(); {
	case c == '"':
		s.p++
		if t.err = s.finish(); t.err == nil {
			t.err = io.EOF
		}
	case c == '\\':
		r, n, err := s.escape()
		if err != nil {
			t.err = err
			return 0
		}
		s.p += n
		return t.put(dst, r)
	case c < ' ':
		t.err = s.fail("the rest of a string")
	case c >= utf8.RuneSelf:
		s.ensure(utf8.UTFMax)
		r, n := utf8.DecodeRune(s.buf[s.p:])
		s.p += n
		return t.put(dst, r)
	}
	return 0 // or it came with the chunk that peek read
}

// runes reads what isn't ASCII and what is escaped, one after the other, as far as
// it fits in dst and the window. It leaves errors to step.
func (t *textReader) runes(dst []byte) int {
	s := &t.s
	n := 0
	for len(dst)-n >= utf8.UTFMax && len(s.buf)-s.p >= lookahead {
		switch c := s.buf[s.p]; {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(s.buf[s.p:])
			s.p += size
			n += utf8.EncodeRune(dst[n:], r)
			continue
		case c == '\\':
			if r, size := unescape(s.buf[s.p:]); size > 0 {
				s.p += size
				n += utf8.EncodeRune(dst[n:], r)
				continue
			}
		}
		break
	}
	return n
}

func (t *textReader) put(dst []byte, r rune) int {
	b := utf8.AppendRune(t.rune[:0], r)
	n := copy(dst, b)
	t.rest = b[n:]
	return n
}
