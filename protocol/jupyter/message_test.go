package jupyter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/zmtp"
)

const (
	testHeader = `{"msg_id":"k_1","session":"k","username":"kernel","date":"2026-01-02T03:04:05Z","msg_type":"stream","version":"5.3"}`
	testParent = `{"msg_id":"c_1","msg_type":"execute_request"}`
	testStream = `{"name":"stdout","text":"hello\n"}`
)

func TestParseMessage(t *testing.T) {
	m, err := ParseMessage(IOPub, newFrames("kernel.1.stream", "more", delimiter, "", testHeader, testParent, `{"a":NaN}`, testStream, "buffer", ""), mustSigner(t, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	want := Header{MsgID: "k_1", Session: "k", Username: "kernel", Date: "2026-01-02T03:04:05Z", MsgType: "stream", Version: "5.3"}
	if m.Header != want || m.Parent != (Header{MsgID: "c_1", MsgType: "execute_request"}) || m.Channel != IOPub {
		t.Errorf("header %+v, parent %+v, channel %s", m.Header, m.Parent, m.Channel)
	}
	if got := fmt.Sprintf("%s %s", m.Identities, m.Metadata); got != `[kernel.1.stream more] {"a":null}` {
		t.Errorf("identities and metadata: %s", got)
	}
	var s Stream
	if decode(t, m, &s); s != (Stream{"stdout", "hello\n"}) {
		t.Errorf("content %+v", s)
	}
	if len(m.Buffers) != 2 || m.Buffers[0].Len() != 6 {
		t.Errorf("buffers %v", m.Buffers)
	}
}

// TestParseMessageTolerates what kernels send instead of what the spec says.
func TestParseMessageTolerates(t *testing.T) {
	for name, parts := range map[string][3]string{
		"no parent":           {testHeader, `{}`, `{}`},
		"null parent":         {testHeader, `null`, `{}`},
		"empty list (R)":      {testHeader, `[]`, `[]`},
		"null date":           {`{"msg_id":"1","msg_type":"status","date":null,"version":5}`, `{"msg_id":null}`, `{}`},
		"more fields":         {`{"msg_type":"status","subshell_id":null,"x":{"y":[1]}}`, `{}`, `{}`},
		"nothing but type":    {`{"msg_type":"status"}`, `{}`, `null`},
		"white space":         {" {\n\"msg_type\" : \"status\" } ", "\n{} ", " {} "},
		"bytes not in UTF-8":  {"{\"msg_type\":\"status\",\"username\":\"\xff\"}", `{}`, `{}`},
		"a field that is NaN": {`{"msg_type":"status","username":NaN}`, `{}`, `{}`},
	} {
		m, err := ParseMessage(IOPub, newFrames(delimiter, "", parts[0], parts[1], parts[2], `{}`), mustSigner(t, "", ""))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if m.Parent != (Header{}) || m.Header.MsgType == "" {
			t.Errorf("%s: header %+v, parent %+v", name, m.Header, m.Parent)
		}
		m.Close()
	}
}

func TestParseMessageRefuses(t *testing.T) {
	huge := strings.Repeat(" ", MaxHeader) + "{}"
	for name, parts := range map[string][]string{
		"no frames":            {},
		"no delimiter":         {"a", "b", testHeader, "{}", "{}", "{}"},
		"nothing after it":     {delimiter},
		"no content":           {delimiter, "", testHeader, "{}", "{}"},
		"empty header":         {delimiter, "", "", "{}", "{}", "{}"},
		"header without type":  {delimiter, "", "{}", "{}", "{}", "{}"},
		"type not a string":    {delimiter, "", `{"msg_type":1}`, "{}", "{}", "{}"},
		"header a list":        {delimiter, "", `[]`, "{}", "{}", "{}"},
		"header cut":           {delimiter, "", `{"msg_type":"x"`, "{}", "{}", "{}"},
		"parent a string":      {delimiter, "", testHeader, `"x"`, "{}", "{}"},
		"parent nearly null":   {delimiter, "", testHeader, `nul`, "{}", "{}"},
		"metadata not JSON":    {delimiter, "", testHeader, "{}", "{'a':1}", "{}"},
		"metadata empty":       {delimiter, "", testHeader, "{}", "", "{}"},
		"metadata too deep":    {delimiter, "", testHeader, "{}", strings.Repeat("[", 1000), "{}"},
		"header too large":     {delimiter, "", huge, "{}", "{}", "{}"},
		"parent too large":     {delimiter, "", testHeader, huge, "{}", "{}"},
		"metadata too large":   {delimiter, "", testHeader, "{}", huge, "{}"},
		"identity too large":   {huge, delimiter, "", testHeader, "{}", "{}", "{}"},
		"signature too large":  {delimiter, huge, testHeader, "{}", "{}", "{}"},
		"delimiter in capital": {"<ids|msg>", "", testHeader, "{}", "{}", "{}"},
	} {
		if _, err := ParseMessage(IOPub, newFrames(parts...), mustSigner(t, "", "")); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The signature comes before the JSON.
	_, err := ParseMessage(IOPub, newFrames(delimiter, "", "no JSON", "{}", "{}", "{}"), mustSigner(t, "", "key"))
	if !errors.Is(err, ErrSignature) {
		t.Errorf("not signed and malformed: %v", err)
	}
}

// TestEncode: what is sent is what is parsed, and every field is there.
func TestEncode(t *testing.T) {
	signer := mustSigner(t, "", "key")
	parent := Header{MsgID: "p", MsgType: "input_request"}
	out := &Outgoing{
		Header:   Header{MsgID: "m", Session: "s", Username: "u", Date: "d", MsgType: "execute_request", Version: "v"},
		Parent:   &parent,
		Metadata: map[string]any{"cellard": map[string]any{"cwd": "/"}},
		Content:  ExecuteRequest{Code: "'<é>'"},
		Buffers:  [][]byte{[]byte("b")},
	}
	frames, err := out.Encode(signer)
	if err != nil {
		t.Fatal(err)
	}
	var received []*zmtp.Frame
	for _, f := range frames {
		received = append(received, zmtp.NewFrame(f))
	}
	m, err := ParseMessage(Shell, received, signer)
	if err != nil {
		t.Fatal(err)
	}
	if m.Header != out.Header || m.Parent != parent || string(m.Metadata) != `{"cellard":{"cwd":"/"}}` || len(m.Buffers) != 1 {
		t.Errorf("sent %+v, got %+v", out, m)
	}
	var content map[string]any
	decode(t, m, &content)
	want := map[string]any{"code": "'<é>'", "silent": false, "store_history": false, "user_expressions": map[string]any{}, "allow_stdin": false, "stop_on_error": false}
	if !reflect.DeepEqual(content, want) {
		t.Errorf("content %v, want %v", content, want)
	}

	empty, err := (&Outgoing{Header: Header{MsgType: "kernel_info_request"}}).Encode(signer)
	if err != nil || len(empty) != 6 || string(bytes.Join(empty[3:], nil)) != "{}{}{}" {
		t.Errorf("an empty message: %q, %v", empty, err)
	}
	if _, err := (&Outgoing{Content: make(chan int)}).Encode(signer); err == nil {
		t.Error("a content that is no JSON was encoded")
	}
}

// FuzzParseMessage takes frames apart that any peer could send; the fuzzer's bytes
// are frames with a zero byte between them.
func FuzzParseMessage(f *testing.F) {
	for _, parts := range [][]string{
		{"kernel.1.stream", delimiter, "", testHeader, testParent, "{}", testStream},
		{delimiter, "", testHeader, "{}", "{}", "{}", "buffer", "buffer"},
		{delimiter, "ab", `{"msg_type":"a\u0062","msg_id":"\ud83d"}`, "null", "[NaN]", "{"},
		{delimiter}, {}, {"", "", ""},
	} {
		f.Add([]byte(strings.Join(parts, "\x00")))
	}
	for _, text := range corpus {
		f.Add([]byte(strings.Join([]string{delimiter, "", text, text, text, text}, "\x00")))
		f.Add([]byte(strings.Join([]string{delimiter, "", testHeader, text, text, text}, "\x00")))
	}
	none, keyed := mustSigner(f, "", ""), mustSigner(f, "", "key")
	f.Fuzz(func(t *testing.T, data []byte) {
		parts := bytes.Split(data, []byte{0})
		var frames []*zmtp.Frame
		for _, p := range parts {
			frames = append(frames, zmtp.NewFrame(p))
		}
		if _, err := ParseMessage(IOPub, frames, keyed); err == nil {
			t.Fatal("a message was accepted that nobody signed")
		}
		m, err := ParseMessage(IOPub, frames, none)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("another error than malformed: %v", err)
			}
			return
		}
		i := len(m.Identities)
		if string(parts[i]) != delimiter || m.Header.MsgType == "" || !json.Valid(m.Metadata) {
			t.Fatalf("accepted: %+v", m)
		}
		// Headers are those that encoding/json reads, where it can.
		for j, got := range []Header{m.Header, m.Parent} {
			var fields map[string]any
			if json.Unmarshal(parts[i+2+j], &fields) != nil {
				continue
			}
			str := func(key string) string { s, _ := fields[key].(string); return s }
			want := Header{str("msg_id"), str("session"), str("username"), str("date"), str("msg_type"), str("version")}
			if got != want {
				t.Fatalf("%q: header %+v, want %+v", parts[i+2+j], got, want)
			}
		}
		observe(m.Content)
		m.Close()
		m.Close()
	})
}
