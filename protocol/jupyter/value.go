package jupyter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/cellard/cellard/protocol/zmtp"
)

// Limits of what Members and Elements return. A notebook's bundles have a dozen
// members; a kernel that sends more than this means no good, and each costs memory.
const (
	MaxMembers  = 1024
	MaxKey      = 1024 // bytes of JSON text
	MaxElements = 64 << 10
)

// ErrTooLarge is wrapped by the errors of values that are over a limit, the
// caller's or one of this package.
var ErrTooLarge = errors.New("jupyter: value too large")

// Value is the JSON text of a value in a message, in memory or in the file that
// the message was spilled to. Nothing of it is decoded before it is asked for, and
// then no more of it held than the method says. The zero Value is that of a
// member that isn't there: its Size is 0, and all that reads it fails.
//
// Syntax is checked by what reads it: Members checks the whole object, with all
// that lies in it, Text checks the string as it goes.
//
// A Value is good until its message is closed. It can be used from several
// goroutines.
type Value struct {
	mem  []byte  // the text, if src is nil
	src  *source // else the file it lies in
	off  int64
	size int64

	kind   byte // its first byte; 0: not looked at
	finite bool // it is known to have no NaN or infinity in it
}

// NewValue makes a Value of text in memory, which it keeps and doesn't copy.
func NewValue(text []byte) Value { return Value{mem: text, size: int64(len(text))} }

// frameValue is the Value of a frame's whole content.
func frameValue(f *zmtp.Frame) Value {
	if b, ok := f.Bytes(); ok {
		return NewValue(b)
	}
	return Value{src: &source{f.ReaderAt(), chunkSize}, size: f.Len()}
}

func (v Value) scan() scanner {
	if v.src == nil {
		return scanner{buf: v.mem, end: v.size}
	}
	return scanner{src: v.src, off: v.off, end: v.size}
}

// section is the part of v from one offset to another.
func (v Value) section(from, to int64) Value {
	if v.src == nil {
		return Value{mem: v.mem[from:to:to], size: to - from}
	}
	return Value{src: v.src, off: v.off + from, size: to - from}
}

// Size is the length of the JSON text in bytes.
func (v Value) Size() int64 { return v.size }

// first is the first byte of the value, 0 if there is none.
func (v Value) first() byte {
	if v.kind != 0 {
		return v.kind
	}
	s := v.scan()
	return s.space()
}

// IsString tells whether v is a string, as far as its first byte tells.
func (v Value) IsString() bool { return v.first() == '"' }

// Member is one member of an object.
type Member struct {
	Key   string
	Value Value
}

// Members are the members of an object.
type Members []Member

// Get returns the member of a name. If there is none it is the zero Value.
func (ms Members) Get(key string) Value {
	for i := range ms {
		if ms[i].Key == key {
			return ms[i].Value
		}
	}
	return Value{}
}

// Members returns the members of an object in their order, their values as
// sections of the text. It goes over the text once and checks all of it. Of a key
// that comes twice the last value counts, as in JavaScript and Python.
func (v Value) Members() (Members, error) {
	var (
		ms   Members
		seen map[string]int // only for many: a kernel could make looking quadratic
	)
	err := v.members(func(key []byte, value Value) error {
		if seen != nil {
			if i, ok := seen[string(key)]; ok {
				ms[i].Value = value
				return nil
			}
		} else {
			for i := range ms {
				if ms[i].Key == string(key) {
					ms[i].Value = value
					return nil
				}
			}
		}
		if len(ms) == MaxMembers {
			return fmt.Errorf("%w: an object with more than %d members", ErrTooLarge, MaxMembers)
		}
		if ms == nil {
			ms = make(Members, 0, 8)
		}
		ms = append(ms, Member{string(key), value})
		if seen != nil {
			seen[string(key)] = len(ms) - 1
		} else if len(ms) == 32 {
			seen = make(map[string]int, 2*len(ms))
			for i := range ms {
				seen[ms[i].Key] = i
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ms, nil
}

// members calls visit for each member of an object as it comes. The key is good
// during the call.
func (v Value) members(visit func(key []byte, value Value) error) error {
	s := v.scan()
	if s.space() != '{' {
		return s.fail("an object")
	}
	s.p++
	if s.space() == '}' {
		s.p++
		return s.finish()
	}
	for {
		from := s.offset()
		if s.peek() != '"' {
			return s.fail("a key")
		}
		if err := s.skipString(); err != nil {
			return err
		}
		key, err := v.section(from, s.offset()).key()
		if err != nil {
			return err
		}
		if err := s.colon(); err != nil {
			return err
		}
		value, err := v.next(&s)
		if err != nil {
			return err
		}
		if err := visit(key, value); err != nil {
			return err
		}
		switch s.space() {
		case ',':
			s.p++
			s.space()
		case '}':
			s.p++
			return s.finish()
		default:
			return s.fail("a comma or a closing brace")
		}
	}
}

// next is the value that comes next in v.
func (v Value) next(s *scanner) (Value, error) {
	kind := s.space()
	from := s.offset()
	s.nonFinite = false
	if err := s.skip(); err != nil {
		return Value{}, err
	}
	value := v.section(from, s.offset())
	value.kind, value.finite = kind, !s.nonFinite
	return value, nil
}

// key is what a key says.
func (v Value) key() ([]byte, error) {
	if v.size > MaxKey {
		return nil, fmt.Errorf("%w: a key of %d bytes", ErrTooLarge, v.size)
	}
	b, err := v.bytes()
	if err != nil {
		return nil, err
	}
	if said, ok := verbatim(b); ok {
		return said, nil
	}
	s, err := NewValue(b).Unquote(MaxKey)
	return []byte(s), err
}

// Elements returns the elements of an array.
func (v Value) Elements() ([]Value, error) {
	s := v.scan()
	if s.space() != '[' {
		return nil, s.fail("an array")
	}
	s.p++
	var es []Value
	if s.space() == ']' {
		s.p++
		return es, s.finish()
	}
	for {
		if len(es) == MaxElements {
			return nil, fmt.Errorf("%w: an array with more than %d elements", ErrTooLarge, MaxElements)
		}
		e, err := v.next(&s)
		if err != nil {
			return nil, err
		}
		es = append(es, e)
		switch s.space() {
		case ',':
			s.p++
		case ']':
			s.p++
			return es, s.finish()
		default:
			return nil, s.fail("a comma or a closing bracket")
		}
	}
}

// Text reads what a string says as UTF-8; a lone surrogate and a byte that isn't
// UTF-8 become U+FFFD. That it isn't a string, or isn't well-formed, is an error of
// Read. It holds at most 64 KiB.
func (v Value) Text() io.Reader { return &textReader{s: v.scan()} }

// Unquote returns what a string says, as Text reads it. A value of more than limit
// bytes of JSON text is an error that wraps ErrTooLarge.
func (v Value) Unquote(limit int64) (string, error) {
	if err := v.check(limit); err != nil {
		return "", err
	}
	if v.src == nil {
		if said, ok := verbatim(v.mem); ok {
			return string(said), nil
		}
	}
	b := make([]byte, 0, v.size)
	for text := (&textReader{s: v.scan()}); ; {
		if len(b) == cap(b) { // bytes to be mended make it longer
			b = append(b, 0)[:len(b)]
		}
		n, err := text.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return string(b), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// verbatim is what is between the quotes of a string that says no more than it
// spells out: no escapes, nothing to mend.
func verbatim(b []byte) ([]byte, bool) {
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return nil, false
	}
	b = b[1 : len(b)-1]
	return b, plainSpan(b, 0) == len(b) && utf8.Valid(b)
}

func (v Value) check(limit int64) error {
	if v.size > limit {
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, v.size, limit)
	}
	return nil
}

// bytes is the text in memory.
func (v Value) bytes() ([]byte, error) {
	if v.src == nil {
		return v.mem, nil
	}
	b := make([]byte, v.size)
	if n, err := v.src.r.ReadAt(b, v.off); n < len(b) {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("jupyter: read a spilled value: %w", err)
	}
	return b, nil
}

// Raw returns the JSON text, checked, with null for NaN and infinities. A value of
// more than limit bytes is an error that wraps ErrTooLarge. The caller may keep it.
func (v Value) Raw(limit int64) (json.RawMessage, error) {
	b, err := v.raw(limit)
	if err == nil && v.src == nil {
		b = bytes.Clone(b)
	}
	return b, err
}

// raw is Raw that may return the frame's own memory.
func (v Value) raw(limit int64) ([]byte, error) {
	if err := v.check(limit); err != nil {
		return nil, err
	}
	b, err := v.bytes()
	if err != nil || v.finite {
		return b, err
	}
	s := NewValue(b).scan()
	if err := s.skip(); err != nil {
		return nil, err
	}
	if err := s.finish(); err != nil {
		return nil, err
	}
	if s.nonFinite {
		return io.ReadAll(newFiniteReader(NewValue(b)))
	}
	return b, nil
}

// Decode decodes the value into what p points to, as encoding/json does, with null
// for NaN and infinities. A value of more than limit bytes is an error that wraps
// ErrTooLarge. Members of the wrong type are left as they are and reported, as a
// *json.UnmarshalTypeError, after all others were set: some kernels send null for a
// number or a string for a list, and what else they say still counts.
func (v Value) Decode(p any, limit int64) error {
	b, err := v.raw(limit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, p); err != nil {
		return fmt.Errorf("jupyter: decode: %w", err)
	}
	return nil
}

// Reader reads the JSON text, with null for NaN and infinities. It doesn't check
// it; a Value that Members or Elements returned has been checked.
func (v Value) Reader() io.Reader {
	switch {
	case !v.finite:
		return newFiniteReader(v)
	case v.src == nil:
		return bytes.NewReader(v.mem)
	}
	return io.NewSectionReader(v.src.r, v.off, v.size)
}
