package jupyter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// corpus is JSON text, and what almost is; it seeds the fuzz targets too.
var corpus = []string{
	``, ` `, `{}`, `[]`, `""`, `0`, `null`, ` {} `, "\t[\r\n]", `{"a":1}`, `{ "a" : 1 , "b":[ ] }`,
	`{"a":1,"a":2}`, `{"a":{"b":{"c":[1,2,{"d":"e"}]}},"f":"g"}`, `{"a\u0062":1,"ab":2}`, `{"":0}`,
	`{"name":"stdout","text":"hello\n"}`, `{"data":{"text/plain":"2","image/png":"iVBORw0KGgo="},"metadata":{}}`,
	`[1,"2",null,true,false,[],{}]`, `["a\n","b\n"]`, `[[[[]]]]`, `[]]`, `[1,]`, `[,1]`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1 "b":2}`, `{1:2}`,
	`"a`, `"a\`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\"\\\/\b\f\n\r\t\u00e9\u0000"`, `"é€😀"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83dx"`, `"\ude00\ud83d"`, `"\ud83d\ud83d\ude00"`, `"\ud83d\n"`, `"\ud83d\u"`,
	"\"\xff\"", "\"a\xc3\"", "\"\xe2\x82\"", "\"\xed\xa0\x80\"", "\"\xf0\x9f\x98\"\"", "\"\x80\x80é\xff\"", "\"\n\"", "\"\x1f\"", "\"\x7f\"", "\"\u2028\"", "{\"\xff\":1}",
	`"` + strings.Repeat("0123456789", 30) + `"`, `"` + strings.Repeat("é\\n", 50) + `x"`,
	"\"0123456789\n0123456789\"", "\"0123456789ab\x00 456789\"", `"01234567\n89abcdef0\"123456\\"`, "\"0123456\xff89abcdef\"",
	`-`, `-0`, `01`, `1.`, `.1`, `1.5e+10`, `1E-3`, `1e`, `--1`, `+1`, `0x10`, `1 2`, `123456789012345678901234567890`, `-1.0`,
	`tru`, `true`, `truex`, `nulll`, `nul`, `TRUE`,
	`NaN`, `[NaN,Infinity,-Infinity]`, `{"a":NaN,"b":"NaN Infinity -Infinity \"NaN\" \\"}`, `-Inf`, `Nan`, `-NaN`, `{"NaN":[1,{"x":NaN}]}`, `InfinityNaN`, `-I`,
	strings.Repeat("[", 100) + strings.Repeat("]", 100), strings.Repeat("[", 101) + strings.Repeat("]", 101),
	strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), strings.Repeat(`{"a":`, 101) + "1" + strings.Repeat("}", 101),
	strings.Repeat(`[{"a":`, 50) + "[]" + strings.Repeat("}]", 50), strings.Repeat("[", 1000), strings.Repeat("[{", 40),
	"{}\x00", "\x00", "\xef\xbb\xbf{}", `{"a":1}x`, `{"a":1}{}`, `"a"b`, `/**/{}`,
}

// fileValue is a Value of text that lies in a file and is read in chunks.
func fileValue(text []byte, chunk int) Value {
	padded := append([]byte("before"), text...)
	return Value{
		src:  &source{bytes.NewReader(append(padded, "after"...)), chunk},
		off:  6,
		size: int64(len(text)),
	}
}

const testLimit = 1 << 20

// observe is all that a Value says, in a form that can be compared.
func observe(v Value) string {
	var b strings.Builder
	say := func(what string, text []byte, err error) {
		if err != nil {
			text = nil
		}
		fmt.Fprintf(&b, "%s: %q, %v\n", what, text, err)
	}
	fmt.Fprintf(&b, "string %v, size %d\n", v.IsString(), v.Size())
	raw, err := v.Raw(testLimit)
	say("raw", raw, err)
	read, err := io.ReadAll(v.Reader())
	say("reader", read, err)
	text, err := io.ReadAll(v.Text())
	fmt.Fprintf(&b, "text: %q, %v\n", text, err) // up to the error
	unquoted, err := v.Unquote(testLimit)
	say("unquoted", []byte(unquoted), err)
	var parts []Value
	members, err := v.Members()
	say("members", nil, err)
	for _, m := range members {
		fmt.Fprintf(&b, "%q\n", m.Key)
		parts = append(parts, m.Value)
	}
	elements, err := v.Elements()
	say("elements", nil, err)
	for _, part := range append(parts, elements...) {
		raw, err := part.Raw(testLimit)
		say("part", raw, err)
		read, err := io.ReadAll(part.Reader())
		say("part's reader", read, err)
		if part.IsString() {
			text, err := io.ReadAll(part.Text())
			say("part's text", text, err)
		}
	}
	return b.String()
}

// depth is how deep valid JSON goes.
func depth(text []byte) int {
	d := json.NewDecoder(bytes.NewReader(text))
	depth, deepest := 0, 0
	for {
		token, err := d.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			deepest = max(deepest, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

// checkValue holds a Value against encoding/json, and one in a file against one in
// memory.
func checkValue(t *testing.T, text []byte) {
	t.Helper()
	v := NewValue(bytes.Clone(text))
	inMemory := observe(v)
	for _, chunk := range []int{1, 2, 3, 7, chunkSize} {
		if inFile := observe(fileValue(text, chunk)); inFile != inMemory {
			t.Fatalf("%q in a file, by %d bytes:\n%s\nin memory:\n%s", text, chunk, inFile, inMemory)
		}
	}
	raw, rawErr := v.Raw(testLimit)
	if rawErr == nil && !json.Valid(raw) {
		t.Fatalf("%q: Raw is no JSON: %q", text, raw)
	}
	if !json.Valid(text) {
		if rawErr == nil && !bytes.Contains(text, []byte("NaN")) && !bytes.Contains(text, []byte("Infinity")) {
			t.Fatalf("%q: accepted, but isn't JSON", text)
		}
		if s, err := v.Unquote(testLimit); err == nil {
			t.Fatalf("%q: read as the string %q", text, s)
		}
		return
	}
	if depth(text) > maxDepth {
		if rawErr == nil {
			t.Fatalf("%q: no error for its depth", text)
		}
		return
	}
	if rawErr != nil || !bytes.Equal(raw, text) {
		t.Fatalf("%q: Raw = %q, %v", text, raw, rawErr)
	}
	checkAgainst(t, text, v)
}

// checkAgainst compares a valid Value with what encoding/json says.
func checkAgainst(t *testing.T, text []byte, v Value) {
	t.Helper()
	var (
		object map[string]json.RawMessage
		array  []json.RawMessage
		str    string
	)
	if members, err := v.Members(); json.Unmarshal(text, &object) == nil && object != nil {
		if errors.Is(err, ErrTooLarge) {
			return
		}
		if err != nil || len(members) != len(object) {
			t.Fatalf("%q: members %v, %v; want %q", text, members, err, object)
		}
		for key, want := range object {
			got, err := members.Get(key).Raw(testLimit)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%q: member %q = %q, %v; want %q", text, key, got, err, want)
			}
		}
	} else if err == nil {
		t.Fatalf("%q: has members", text)
	}
	if elements, err := v.Elements(); json.Unmarshal(text, &array) == nil && array != nil {
		if errors.Is(err, ErrTooLarge) {
			return
		}
		if err != nil || len(elements) != len(array) {
			t.Fatalf("%q: elements %v, %v; want %q", text, elements, err, array)
		}
		for i, want := range array {
			if got, err := elements[i].Raw(testLimit); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%q: element %d = %q, %v; want %q", text, i, got, err, want)
			}
		}
	} else if err == nil {
		t.Fatalf("%q: has elements", text)
	}
	got, err := v.Unquote(testLimit)
	if json.Unmarshal(text, &str) == nil && v.IsString() {
		slow, slowErr := io.ReadAll(iotest.OneByteReader(v.Text()))
		if err != nil || got != str || slowErr != nil || string(slow) != str {
			t.Fatalf("%q: text %q, %v; byte by byte %q, %v; want %q", text, got, err, slow, slowErr, str)
		}
	} else if err == nil {
		t.Fatalf("%q: is a string", text)
	}
}

func TestValue(t *testing.T) {
	for _, text := range corpus {
		checkValue(t, []byte(text))
	}
}

func FuzzValue(f *testing.F) {
	for _, text := range corpus {
		f.Add([]byte(text))
	}
	f.Fuzz(checkValue)
}

func TestZeroValue(t *testing.T) {
	v := Members(nil).Get("missing")
	if v.Size() != 0 || v.IsString() {
		t.Errorf("a missing member is something: %s", observe(v))
	}
	var p struct{ A int }
	if _, err := v.Members(); err == nil {
		t.Error("it has members")
	}
	if err := v.Decode(&p, testLimit); err == nil {
		t.Error("it can be decoded")
	}
	if _, err := io.ReadAll(v.Text()); err == nil {
		t.Error("it has text")
	}
}

func TestNonFinite(t *testing.T) {
	const text = `{"data":{"application/json":{"x":[NaN,Infinity, -Infinity,"NaN","\"NaN\\\\"]},"text/plain":"NaN"},"n":1.5}`
	for _, v := range []Value{NewValue([]byte(text)), fileValue([]byte(text), 3)} {
		members, err := v.Members()
		if err != nil {
			t.Fatal(err)
		}
		data, err := members.Get("data").Members()
		if err != nil {
			t.Fatal(err)
		}
		const want = `{"x":[null,null, null,"NaN","\"NaN\\\\"]}`
		value := data.Get("application/json")
		raw, err := value.Raw(testLimit)
		read, readErr := io.ReadAll(value.Reader())
		if string(raw) != want || err != nil || string(read) != want || readErr != nil {
			t.Errorf("raw %s, %v; read %s, %v", raw, err, read, readErr)
		}
		var p struct {
			Data map[string]any
			N    float64
		}
		if err := v.Decode(&p, testLimit); err != nil || p.N != 1.5 || p.Data["text/plain"] != "NaN" {
			t.Errorf("decoded %+v, %v", p, err)
		}
	}
}

func TestDecodeMistyped(t *testing.T) {
	var reply ExecuteReply
	err := NewValue([]byte(`{"status":"error","execution_count":null,"traceback":"one\ntwo","ename":"E","evalue":7}`)).Decode(&reply, testLimit)
	var mistyped *json.UnmarshalTypeError
	if !errors.As(err, &mistyped) || reply.Status != StatusError || reply.EName != "E" {
		t.Errorf("decoded %+v, %v", reply, err)
	}
}

func TestValueLimits(t *testing.T) {
	object := func(n int) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"k%d":%d`, i, i)
		}
		return []byte("{" + b.String()[1:] + "}")
	}
	array := func(n int) []byte { return []byte("[" + strings.Repeat("0,", n-1) + "0]") }
	key := func(n int) []byte { return []byte(`{"` + strings.Repeat("k", n) + `":0}`) }
	for _, c := range []struct {
		name string
		text []byte
		ok   bool
		read func(Value) error
	}{
		{"members", object(MaxMembers), true, readMembers},
		{"one member more", object(MaxMembers + 1), false, readMembers},
		{"elements", array(MaxElements), true, readElements},
		{"one element more", array(MaxElements + 1), false, readElements},
		{"key", key(MaxKey - 2), true, readMembers},
		{"a longer key", key(MaxKey - 1), false, readMembers},
		{"decode", []byte(`"12345678"`), true, func(v Value) error { var s string; return v.Decode(&s, 10) }},
		{"decode more", []byte(`"123456789"`), false, func(v Value) error { var s string; return v.Decode(&s, 10) }},
		{"raw", []byte(`"123456789"`), false, func(v Value) error { _, err := v.Raw(10); return err }},
		{"unquote", []byte(`"123456789"`), false, func(v Value) error { _, err := v.Unquote(10); return err }},
	} {
		for _, v := range []Value{NewValue(c.text), fileValue(c.text, chunkSize)} {
			if err := c.read(v); c.ok && err != nil || !c.ok && !errors.Is(err, ErrTooLarge) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
	// The same key again and again is one member.
	if err := readMembers(NewValue([]byte(`{` + strings.Repeat(`"a":1,`, 10*MaxMembers) + `"a":2}`))); err != nil {
		t.Error(err)
	}
}

func readMembers(v Value) error  { _, err := v.Members(); return err }
func readElements(v Value) error { _, err := v.Elements(); return err }

func TestFileFails(t *testing.T) {
	text := []byte(`{"a":"` + strings.Repeat("x", 1000) + `","b":1}`)
	v := Value{src: &source{bytes.NewReader(text[:500]), 64}, size: int64(len(text))}
	for what, err := range map[string]error{
		"members": readMembers(v),
		"raw":     func() error { _, err := v.Raw(testLimit); return err }(),
		"reader":  func() error { _, err := io.ReadAll(v.Reader()); return err }(),
		"text":    func() error { _, err := io.ReadAll(v.section(5, 1007).Text()); return err }(),
	} {
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s of a file that ends early: %v", what, err)
		}
	}
}
