package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/cellard/cellard/protocol/api"
)

// field is one member that a body may have.
type field struct {
	name string
	want string // what it must be, for the refusal
	into any    // a pointer, for json.Unmarshal
	// must marks a field that has to be there; a wrong one is then 422, as hosted
	// interpreters answer.
	must bool
}

// decode reads a body that is one JSON object. What encoding/json would let pass and
// a caller can't have meant is refused, by the field's name: a member twice, names
// that differ in case only (they are unknown), null for a text, bytes or escapes
// that are no Unicode. Unknown members are ignored. An empty body is an empty object.
func decode(body []byte, fields []field) error {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	// This checks the syntax of the whole, and bounds its depth (10,000).
	if err := json.Unmarshal(body, &struct{}{}); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return api.Errorf(api.CodeInvalidRequest, "the body is not one JSON value: %v, at byte %d", err, syntax.Offset).
				WithHint("send one JSON object, as in %s", example)
		}
		return notObject(body)
	}
	s := scanner{b: body}
	if s.space(); s.b[s.i] != '{' {
		return notObject(body)
	}
	seen := make([]bool, len(fields))
	for name, value := range s.members() {
		for i, f := range fields {
			if f.name != name {
				continue
			}
			if seen[i] {
				return api.Errorf(api.CodeInvalidRequest, "%s is there twice", name).WithHint("send it once")
			}
			seen[i] = true
			if err := f.set(value); err != nil {
				return err
			}
		}
	}
	for i, f := range fields {
		if f.must && !seen[i] {
			return f.refuse("%s is missing: it must be %s", f.name, f.want)
		}
	}
	return nil
}

// example is a body that is right.
const example = `{"code": "6 * 7"}`

func notObject(body []byte) error {
	return api.Errorf(api.CodeInvalidRequest, "the body must be a JSON object, not %s", describe(bytes.TrimSpace(body))).
		WithHint("send one, as in %s", example)
}

func (f field) refuse(format string, args ...any) error {
	e := api.Errorf(api.CodeInvalidRequest, format, args...).WithHint("send %s as %s", f.name, f.want)
	if f.must {
		e.Status = http.StatusUnprocessableEntity
	}
	return e
}

func (f field) set(value []byte) error {
	if string(value) == "null" && !f.must {
		return nil
	}
	if !utf8.Valid(value) {
		return api.Errorf(api.CodeInvalidRequest, "%s is not valid UTF-8", f.name).WithHint("send text, encoded as UTF-8")
	}
	if loneSurrogate(value) {
		return api.Errorf(api.CodeInvalidRequest, `%s has a lone surrogate (\ud800 to \udfff without its other half), which is no character`, f.name).
			WithHint("escape a character past U+FFFF as a pair, or send it as UTF-8")
	}
	if string(value) != "null" {
		err := json.Unmarshal(value, f.into)
		if err == nil {
			return nil
		}
		var inner fieldError
		if errors.As(err, &inner) {
			return f.refuse("%s%s", f.name, inner)
		}
	}
	return f.refuse("%s must be %s, not %s", f.name, f.want, describe(value))
}

// fieldError is what is wrong within a field: its text goes on from the field's name.
type fieldError string

func (e fieldError) Error() string { return string(e) }

// stringMap is an object of strings: encoding/json would take null for "".
type stringMap map[string]string

func (m *stringMap) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		return errors.New("not an object")
	}
	*m = stringMap{}
	s := scanner{b: b}
	for name, value := range s.members() {
		if value[0] != '"' {
			return fieldError(fmt.Sprintf(".%s must be a string, not %s", quote(name), describe(value)))
		}
		if _, ok := (*m)[name]; ok {
			return fieldError(fmt.Sprintf(".%s is there twice", quote(name)))
		}
		(*m)[name] = unquote(value)
	}
	return nil
}

// stdin is an api.Stdin that tells which of its answers is wrong.
type stdin struct{ sent *api.Stdin }

func (s *stdin) UnmarshalJSON(b []byte) error {
	s.sent = new(api.Stdin)
	err := s.sent.UnmarshalJSON(b)
	switch {
	case err == nil:
		return nil
	case b[0] == '"':
		return fieldError(fmt.Sprintf(` must be "live" or an array of strings, not %.40q`, unquote(b)))
	case b[0] != '[':
		return err
	}
	for i, value := range (&scanner{b: b}).elements() {
		if value[0] != '"' {
			return fieldError(fmt.Sprintf("[%d] must be a string, not %s", i, describe(value)))
		}
	}
	return err
}

// describe says what kind of JSON value b is.
func describe(b []byte) string {
	if len(b) == 0 {
		return "nothing"
	}
	switch b[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f', 'n':
		return string(b)
	}
	if len(b) <= 32 {
		return string(b)
	}
	return "such a number"
}

// loneSurrogate tells whether a JSON text has an escape of half a character.
// encoding/json puts U+FFFD in its place: another text than was sent.
func loneSurrogate(b []byte) bool {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return false
		}
		if b[i+1] != 'u' {
			b = b[i+2:]
			continue
		}
		r := hex4(b[i+2:])
		b = b[i+6:]
		if r < 0xd800 || r > 0xdfff {
			continue
		}
		if r > 0xdbff || len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
			return true
		}
		if low := hex4(b[2:]); low < 0xdc00 || low > 0xdfff {
			return true
		}
		b = b[6:]
	}
}

func hex4(b []byte) uint64 {
	r, _ := strconv.ParseUint(string(b[:4]), 16, 32)
	return r
}

func unquote(b []byte) (s string) {
	_ = json.Unmarshal(b, &s) // b was found to be a JSON string
	return s
}

// scanner walks valid JSON without copying it.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\t' || s.b[s.i] == '\r') {
		s.i++
	}
}

// members yields the names and values of the object at s.
func (s *scanner) members() func(yield func(string, []byte) bool) {
	return func(yield func(string, []byte) bool) {
		s.i++ // {
		for {
			s.space()
			if s.b[s.i] == '}' {
				return
			}
			name := s.value()
			s.space()
			s.i++ // :
			s.space()
			value := s.value()
			if !yield(unquote(name), value) {
				return
			}
			s.space()
			if s.b[s.i] == ',' {
				s.i++
			}
		}
	}
}

// elements yields the places and values of the array at s.
func (s *scanner) elements() func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		s.i++ // [
		for n := 0; ; n++ {
			s.space()
			if s.b[s.i] == ']' || !yield(n, s.value()) {
				return
			}
			s.space()
			if s.b[s.i] == ',' {
				s.i++
			}
		}
	}
}

// value steps over one value.
func (s *scanner) value() []byte {
	from, depth := s.i, 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			s.string()
		case '{', '[':
			depth++
			s.i++
		case '}', ']':
			if depth == 0 {
				return s.b[from:s.i]
			}
			depth--
			s.i++
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return s.b[from:s.i]
			}
			s.i++
			continue
		default: // of a number, true, false, null; or a colon
			s.i++
			continue
		}
		if depth == 0 {
			return s.b[from:s.i]
		}
	}
	return s.b[from:s.i]
}

func (s *scanner) string() {
	for s.i++; s.b[s.i] != '"'; s.i++ {
		if s.b[s.i] == '\\' {
			s.i++
		}
	}
	s.i++
}
