package mime

import (
	"strings"
	"unicode/utf8"
)

// Decoder turns a stream of bytes into valid UTF-8, wherever the stream is cut.
// Bytes that are none become U+FFFD, one for each maximal subpart of an
// ill-formed sequence, as the Unicode standard recommends (section 3.9) and
// Python and browsers do. The zero value is ready.
type Decoder struct {
	carry [utf8.UTFMax - 1]byte
	n     int
}

// Write returns the text of p and of what an earlier Write kept back. It keeps
// back at most three bytes: those of a character that p ends in the middle of.
func (d *Decoder) Write(p []byte) string {
	if d.n == 0 {
		n := len(p) - unfinishedLen(p)
		if utf8.Valid(p[:n]) {
			d.n = copy(d.carry[:], p[n:])
			return string(p[:n])
		}
	}
	var b strings.Builder
	b.Grow(d.n + len(p))
	for d.n > 0 && len(p) > 0 {
		// At most a character's bytes, so that what follows stays where it is.
		joined := append(append(make([]byte, 0, utf8.UTFMax), d.carry[:d.n]...), p[:min(len(p), utf8.UTFMax-d.n)]...)
		size, state := sequence(joined)
		if state == cut {
			d.n = copy(d.carry[:], joined)
			return b.String()
		}
		// The carry is a proper beginning, so the sequence holds all of it.
		writeSequence(&b, joined[:size], state)
		p = p[size-d.n:]
		d.n = 0
	}
	for len(p) > 0 {
		n := validPrefix(p)
		b.Write(p[:n])
		p = p[n:]
		if len(p) == 0 {
			break
		}
		size, state := sequence(p)
		if state == cut {
			d.n = copy(d.carry[:], p)
			break
		}
		writeSequence(&b, p[:size], state)
		p = p[size:]
	}
	return b.String()
}

// Flush ends the stream: it returns U+FFFD if a character was cut off at its
// end, else nothing. The Decoder is then as new.
func (d *Decoder) Flush() string {
	if d.n == 0 {
		return ""
	}
	d.n = 0
	return string(utf8.RuneError)
}

func writeSequence(b *strings.Builder, p []byte, state sequenceState) {
	if state == valid {
		b.Write(p)
	} else {
		b.WriteRune(utf8.RuneError)
	}
}

// unfinishedLen is how many bytes at the end of p begin a character and don't end it.
func unfinishedLen(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if utf8.RuneStart(p[len(p)-n]) {
			if size, state := sequence(p[len(p)-n:]); state == cut && size == n {
				return n
			}
			return 0
		}
	}
	return 0
}

// validPrefix is the length of the valid UTF-8 that p begins with.
func validPrefix(p []byte) int {
	for i := 0; i < len(p); {
		if p[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return len(p)
}

type sequenceState int

const (
	valid sequenceState = iota
	invalid
	cut // could become valid with more bytes
)

// sequence measures the character, or the maximal subpart of one, that p begins
// with (Unicode 3.9, table 3-7).
func sequence(p []byte) (int, sequenceState) {
	lead := p[0]
	low, high := byte(0x80), byte(0xbf) // of the second byte
	var size int
	switch {
	case lead < 0x80:
		return 1, valid
	case lead >= 0xc2 && lead <= 0xdf:
		size = 2
	case lead >= 0xe0 && lead <= 0xef:
		size = 3
		switch lead {
		case 0xe0:
			low = 0xa0
		case 0xed:
			high = 0x9f
		}
	case lead >= 0xf0 && lead <= 0xf4:
		size = 4
		switch lead {
		case 0xf0:
			low = 0x90
		case 0xf4:
			high = 0x8f
		}
	default:
		return 1, invalid
	}
	for i := 1; i < size; i++ {
		if i == len(p) {
			return i, cut
		}
		if p[i] < low || p[i] > high {
			return i, invalid
		}
		low, high = 0x80, 0xbf
	}
	return size, valid
}
