package jupyter

import (
	"io"
)

// finiteReader reads JSON text with null in place of the tokens that JSON hasn't
// got. It checks nothing.
type finiteReader struct {
	s       scanner
	out     []byte // goes out before what comes next in the text
	inside  bool   // a string
	escaped bool   // the next byte, by a backslash
}

func newFiniteReader(v Value) *finiteReader { return &finiteReader{s: v.scan()} }

func (f *finiteReader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(f.out) > 0 {
			c := copy(p[n:], f.out)
			f.out = f.out[c:]
			n += c
			continue
		}
		f.s.ensure(lookahead)
		b := f.s.buf[f.s.p:]
		if len(b) == 0 {
			break
		}
		if !f.inside {
			if token := nonFiniteToken(b); token > 0 {
				f.s.p += token
				f.out = []byte("null")
				continue
			}
		}
		p[n] = b[0]
		n++
		f.s.p++
		switch {
		case f.escaped:
			f.escaped = false
		case b[0] == '"':
			f.inside = !f.inside
		case b[0] == '\\' && f.inside:
			f.escaped = true
		}
	}
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	if f.s.err != nil {
		return 0, f.s.err
	}
	return 0, io.EOF
}

// nonFiniteToken is the length of such a token at the beginning of b, or 0.
func nonFiniteToken(b []byte) int {
	for _, token := range [...]string{"NaN", "Infinity", "-Infinity"} {
		if len(b) >= len(token) && string(b[:len(token)]) == token {
			return len(token)
		}
	}
	return 0
}
