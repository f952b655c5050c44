package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/api"
)

func TestDecodeRun(t *testing.T) {
	for _, c := range []struct {
		body   string
		status int    // 0: taken
		has    string // in the message
	}{
		{`{"code":""}`, 0, ""},
		{" {\n\t\"code\" : \"x\" , \"code2\":[{\"code\":1},\"}\"] }\r\n", 0, ""},
		{`{"code":"x","timeoutMs":null,"stream":null,"env":null,"stdin":null,"context":null}`, 0, ""},
		{`{"\u0063ode":"x"}`, 0, ""},
		{`{"code":"\ud83d\ude00 \\ud800"}`, 0, ""},
		{`{"code":"x","stdin":"live"}`, 0, ""},
		{`{"code":"x","stdin":[]}`, 0, ""},

		{``, 422, "code is missing"},
		{`{}`, 422, "code is missing"},
		{`{"Code":"x"}`, 422, "code is missing"},
		{`{"code":1}`, 422, "code must be a string, not 1"},
		{`{"code":null}`, 422, "code must be a string, not null"},
		{`{"code":["x"]}`, 422, "code must be a string, not an array"},
		{`{"code":{"x":1}}`, 422, "code must be a string, not an object"},

		{`{"code":"x","timeoutMs":"1"}`, 400, "timeoutMs must be an integer, not a string"},
		{`{"code":"x","timeoutMs":1.5}`, 400, "timeoutMs must be an integer, not 1.5"},
		{`{"code":"x","timeoutMs":99999999999999999999}`, 400, "timeoutMs must be an integer"},
		{`{"code":"x","timeoutMs":9223372036854775807}`, 400, "timeoutMs must be from 0"},
		{`{"code":"x","timeoutMs":-1}`, 400, "timeoutMs must be from 0"},
		{`{"code":"x","waitMs":-1}`, 400, "waitMs must be from 0"},
		{`{"code":"x","stream":"true"}`, 400, "stream must be true or false, not a string"},
		{`{"code":"x","stream":1}`, 400, "stream must be true or false, not 1"},
		{`{"code":"x","interruptOnDisconnect":0}`, 400, "interruptOnDisconnect must be"},
		{`{"code":"x","ifGeneration":"1"}`, 400, "ifGeneration must be an integer"},
		{`{"code":"x","language":1}`, 400, "language must be a string"},
		{`{"code":"x","context":true}`, 400, "context must be a string, not true"},
		{`{"code":"x","cwd":{}}`, 400, "cwd must be a string"},
		{`{"code":"x","idempotencyKey":7}`, 400, "idempotencyKey must be a string"},
		{`{"code":"x","env":[]}`, 400, "env must be an object of strings, not an array"},
		{`{"code":"x","env":{"A":1}}`, 400, "env.A must be a string, not 1"},
		{`{"code":"x","env":{"A":null}}`, 400, "env.A must be a string, not null"},
		{`{"code":"x","env":{"A":"1","\u0041":"2"}}`, 400, "env.A is there twice"},
		{`{"code":"x","stdin":"dead"}`, 400, `stdin must be "live" or an array of strings, not "dead"`},
		{`{"code":"x","stdin":[1]}`, 400, "stdin[0] must be a string, not 1"},
		{`{"code":"x","stdin":[ "[1]" , "]" ,["x"]]}`, 400, "stdin[2] must be a string, not an array"},
		{`{"code":"x","stdin":["",null]}`, 400, "stdin[1] must be a string, not null"},
		{`{"code":"x","stdin":1}`, 400, `stdin must be "live" or an array of strings, not 1`},

		{`{"code":"x","code":"y"}`, 400, "code is there twice"},
		{`{"code":"x"}{"code":"y"}`, 400, "not one JSON value"},
		{`{"code":"x"} x`, 400, "not one JSON value"},
		{`{"code":"x",}`, 400, "not one JSON value"},
		{`{"code":"x"`, 400, "not one JSON value"},
		{`{"code":"x` + "\n" + `"}`, 400, "not one JSON value"},
		{`[]`, 400, "must be a JSON object, not an array"},
		{`null`, 400, "must be a JSON object, not null"},
		{`"code"`, 400, "must be a JSON object, not a string"},
		{"{\"code\":\"\xff\"}", 400, "code is not valid UTF-8"},
		{"{\"code\":\"x\",\"cwd\":\"\xc3\"}", 400, "cwd is not valid UTF-8"},
		{`{"code":"\ud800"}`, 400, "code has a lone surrogate"},
		{`{"code":"\ud800x"}`, 400, "code has a lone surrogate"},
		{`{"code":"\udc00\ud800"}`, 400, "code has a lone surrogate"},
		{`{"code":"\ud800\ud800\udc00"}`, 400, "code has a lone surrogate"},
		{`{"code":"x","a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, 400, "depth"},
	} {
		req, err := decodeRun([]byte(c.body), http.Header{})
		if c.status == 0 {
			if err != nil {
				t.Errorf("%.80s: %v", c.body, err)
			}
			continue
		}
		var e *api.Error
		if !errors.As(err, &e) || e.Code != api.CodeInvalidRequest || e.HTTPStatus() != c.status || !strings.Contains(e.Message, c.has) {
			t.Errorf("%.80s: got %+v, %v; want %d with %q", c.body, req, err, c.status, c.has)
		}
	}
}

func TestIdempotencyKeyHeader(t *testing.T) {
	h := http.Header{"Idempotency-Key": {"a"}}
	if req, err := decodeRun([]byte(`{"code":"","idempotencyKey":"a"}`), h); err != nil || req.IdempotencyKey != "a" {
		t.Errorf("the same twice: %v", err)
	}
	if _, err := decodeRun([]byte(`{"code":"","idempotencyKey":"b"}`), h); err == nil {
		t.Error("two that differ were taken")
	}
	if _, err := decodeRun([]byte(`{"code":""}`), http.Header{"Idempotency-Key": {"a", "b"}}); err == nil {
		t.Error("two headers that differ were taken")
	}
}

// What is taken means what encoding/json says it means, and comes out the same when
// it is sent again.
func FuzzDecodeRun(f *testing.F) {
	for _, s := range []string{
		`{"code":"x","language":"r","context":"c","timeoutMs":1,"stream":true,"interruptOnDisconnect":false,"idempotencyKey":"k","waitMs":2,"ifGeneration":3,"env":{"A":"b"},"cwd":"/","stdin":["a"]}`,
		`{"code":"\ud83d\ude00","stdin":"live","x":[[],{"a":[1,2,{"code":"y"}]}]}`,
		"{\"code\":\"\xff\"}", `{"code":"\ud800"}`, `{"code":1}`, `{}`, ``, `[`, `{"code":"x","code":"y"}`, `null`,
		`{"":{"":""},"code":""}`, `{"code":"x","timeoutMs":1e3}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		req, err := decodeRun(b, http.Header{})
		if err != nil {
			var e *api.Error
			if !errors.As(err, &e) || e.Message == "" || e.HTTPStatus() != 400 && e.HTTPStatus() != 422 {
				t.Fatalf("%q: error %#v", b, err)
			}
			return
		}
		again, err := api.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		req2, err := decodeRun(again, http.Header{})
		if len(req.Env) == 0 {
			req.Env, req2.Env = nil, nil // omitted when empty
		}
		if err != nil || !reflect.DeepEqual(req, req2) {
			t.Fatalf("%q: %+v, then %+v, %v", b, req, req2, err)
		}
		// Exactly named members are what encoding/json finds too, unless another
		// differs from them in case only.
		if bytes.Contains(bytes.ToLower(b), []byte("code")) && bytes.Count(bytes.ToLower(b), []byte("code")) == 1 && !bytes.Contains(b, []byte(`\`)) {
			var std struct {
				Code string `json:"code"`
			}
			if err := json.Unmarshal(b, &std); err != nil || std.Code != req.Code {
				t.Fatalf("%q: code %q, encoding/json has %q, %v", b, req.Code, std.Code, err)
			}
		}
	})
}
