package jupyter

import (
	"fmt"
	"io"
)

// maxDepth bounds how deep arrays and objects may lie in each other in what a
// kernel sends.
const maxDepth = 100

// chunkSize is how much of a text that lies in a file is held in memory while it
// is scanned.
const chunkSize = 64 << 10

// lookahead is the longest thing that must be seen in one piece: an escaped
// surrogate pair.
const lookahead = len(`\uD83D\uDE00`)

// SyntaxError says where a kernel's JSON stops being JSON.
type SyntaxError struct {
	Offset int64 // bytes from the beginning of the value
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("jupyter: invalid JSON at byte %d: %s", e.Offset, e.Reason)
}

// A source is a file that JSON text lies in.
type source struct {
	r     io.ReaderAt
	chunk int
}

// A scanner goes over JSON text once, checks it, and holds no more of it than a
// window: the whole text where that is in memory anyway, a chunk of a file.
// Errors stick.
//
// Besides JSON it takes the tokens NaN, Infinity and -Infinity as values, which
// Python's and others' encoders write by default: a message is not lost for a
// number in it.
type scanner struct {
	buf  []byte // the window
	p    int    // the next byte is buf[p]
	base int64  // buf[0]'s place in the text
	end  int64  // the text's length

	src *source // nil: the window is the text
	off int64   // the text's place in src
	own []byte

	nonFinite bool // a NaN or an infinity was seen
	err       error
}

// load reads on, after what is left of the window.
func (s *scanner) load() {
	rest := len(s.buf) - s.p
	n := int(min(int64(s.src.chunk), s.end-s.base-int64(len(s.buf))))
	if need := rest + n; cap(s.own) < need {
		own := make([]byte, need+lookahead)
		copy(own, s.buf[s.p:])
		s.own = own
	} else {
		copy(s.own, s.buf[s.p:])
	}
	s.base += int64(s.p)
	s.p = 0
	got, err := s.src.r.ReadAt(s.own[rest:rest+n], s.off+s.base+int64(rest))
	s.buf = s.own[:rest+got]
	if got < n && s.err == nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		s.err = fmt.Errorf("jupyter: read a spilled value: %w", err)
		s.end = s.base + int64(len(s.buf))
	}
}

// ensure brings at least n bytes into the window if the text has so many left, and
// tells whether it could.
func (s *scanner) ensure(n int) bool {
	for len(s.buf)-s.p < n {
		if s.base+int64(len(s.buf)) >= s.end {
			return false
		}
		s.load()
	}
	return true
}

// peek returns the next byte, and 0 at the end: no JSON has that byte in it.
func (s *scanner) peek() byte {
	if s.p < len(s.buf) || s.ensure(1) {
		return s.buf[s.p]
	}
	return 0
}

// offset is the place of the next byte.
func (s *scanner) offset() int64 { return s.base + int64(s.p) }

// fail ends the scan because the next byte isn't what was wanted.
func (s *scanner) fail(want string) error {
	if s.err != nil {
		return s.err
	}
	if c := s.peek(); s.err != nil { // the file failed
		return s.err
	} else if s.offset() >= s.end {
		s.err = &SyntaxError{s.offset(), "it ends where there should be " + want}
	} else {
		s.err = &SyntaxError{s.offset(), fmt.Sprintf("%q where there should be %s", c, want)}
	}
	return s.err
}

// space skips white space and returns the byte after it, as peek does.
func (s *scanner) space() byte {
	for {
		switch c := s.peek(); c {
		case ' ', '\t', '\n', '\r':
			s.p++
		default:
			return c
		}
	}
}

// finish checks that nothing but white space is left.
func (s *scanner) finish() error {
	if s.space(); s.err == nil && s.offset() < s.end {
		return s.fail("the end")
	}
	return s.err
}

// skip goes over one value without recursion: the stack of what is open is a bit
// for each level.
func (s *scanner) skip() error {
	var objects [maxDepth/64 + 1]uint64
	depth := 0
	for {
		switch c := s.space(); c {
		case '{', '[':
			if depth == maxDepth {
				if s.err == nil {
					s.err = &SyntaxError{s.offset(), fmt.Sprintf("more than %d levels", maxDepth)}
				}
				return s.err
			}
			s.p++
			depth++
			if c == '[' {
				objects[depth/64] &^= 1 << (depth % 64)
				if s.space() != ']' {
					continue
				}
			} else {
				objects[depth/64] |= 1 << (depth % 64)
				if s.space() != '}' {
					if err := s.skipKey(); err != nil {
						return err
					}
					continue
				}
			}
			s.p++
			depth--
		case '"':
			if err := s.skipString(); err != nil {
				return err
			}
		default:
			if err := s.skipScalar(c); err != nil {
				return err
			}
		}
		// A value has ended, and with it all that ends here.
		for {
			if depth == 0 {
				return nil
			}
			object := objects[depth/64]&(1<<(depth%64)) != 0
			c := s.space()
			if c == ',' {
				s.p++
				if object {
					s.space()
					if err := s.skipKey(); err != nil {
						return err
					}
				}
				break
			}
			if object && c != '}' {
				return s.fail("a comma or a closing brace")
			}
			if !object && c != ']' {
				return s.fail("a comma or a closing bracket")
			}
			s.p++
			depth--
		}
	}
}

// skipKey goes over a member's key and colon.
func (s *scanner) skipKey() error {
	if s.peek() != '"' {
		return s.fail("a key")
	}
	if err := s.skipString(); err != nil {
		return err
	}
	return s.colon()
}

func (s *scanner) colon() error {
	if s.space() != ':' {
		return s.fail("a colon")
	}
	s.p++
	return nil
}

// skipString goes over a string, whose opening quote is next.
func (s *scanner) skipString() error {
	s.p++
	for {
		s.p += plainSpan(s.buf[s.p:], 0)
		switch c := s.peek(); {
		case c == '"':
			s.p++
			return nil
		case c == '\\':
			if _, n, err := s.escape(); err != nil {
				return err
			} else {
				s.p += n
			}
		case c < ' ':
			return s.fail("the rest of a string")
		}
	}
}

// skipScalar goes over a number or a word, which begins with c.
func (s *scanner) skipScalar(c byte) error {
	switch {
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	case c == 'N':
		s.nonFinite = true
		return s.word("NaN")
	case c == 'I':
		s.nonFinite = true
		return s.word("Infinity")
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	}
	return s.fail("a value")
}

func (s *scanner) word(w string) error {
	for i := range len(w) {
		if s.peek() != w[i] {
			return s.fail(w)
		}
		s.p++
	}
	return s.err
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.p++
		if s.peek() == 'I' {
			s.nonFinite = true
			return s.word("Infinity")
		}
	}
	if s.peek() == '0' {
		s.p++
	} else if err := s.digits(); err != nil {
		return err
	}
	if s.peek() == '.' {
		s.p++
		if err := s.digits(); err != nil {
			return err
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.p++
		if c := s.peek(); c == '+' || c == '-' {
			s.p++
		}
		return s.digits()
	}
	return s.err
}

func (s *scanner) digits() error {
	if c := s.peek(); c < '0' || c > '9' {
		return s.fail("a digit")
	}
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.p++
	}
	return s.err
}
