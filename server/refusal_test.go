package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/api"
)

// What net/http refuses before a handler sees it has the API's body too, as the first
// request of a connection and as a later one.
func TestOwnRefusals(t *testing.T) {
	a := serveUnix(t, Options{Manager: newManager(t)})
	good := "GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n"
	for request, want := range map[string]struct {
		status int
		code   api.Code
		text   string
	}{
		"nonsense\r\n\r\n":                                                                      {400, api.CodeInvalidRequest, "Bad Request"},
		"GET /v1/health HTTP/1.1\r\n\r\n":                                                       {400, api.CodeInvalidRequest, "missing required Host header"},
		"GET /v1/health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n":                                 {400, api.CodeInvalidRequest, "Bad Request"},
		"GET /v1/health HTTP/1.1\r\nHost: a\r\nNo colon\r\n\r\n":                                {400, api.CodeInvalidRequest, "Bad Request"},
		"GET /v1/health HTTP/9.1\r\nHost: a\r\n\r\n":                                            {505, api.CodeInvalidRequest, "HTTP Version Not Supported"},
		"POST /v1/interpreter:run HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n":       {501, api.CodeInvalidRequest, "Unsupported transfer encoding"},
		"POST /v1/interpreter:run HTTP/1.1\r\nHost: a\r\nExpect: cake\r\n\r\n":                  {417, api.CodeInvalidRequest, "Expectation Failed"},
		"GET /v1/health HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n": {431, api.CodeTooLarge, "61440 bytes"},
	} {
		for _, before := range []string{"", good} {
			c := a.dial()
			go func() { _, _ = io.WriteString(c, before+request) }() // the agent may stop reading
			r := bufio.NewReader(c)
			if before != "" {
				resp, err := http.ReadResponse(r, nil)
				if err != nil || resp.StatusCode != 200 {
					t.Fatalf("%.80q: the request before: %v %v", request, resp, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
			}
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("%.80q: %v", request, err)
			}
			b, _ := io.ReadAll(resp.Body)
			var e api.ErrorBody
			if err := json.Unmarshal(b, &e); err != nil || e.Error == nil {
				t.Errorf("%.80q: %d, no error body: %q", request, resp.StatusCode, b)
				continue
			}
			if resp.StatusCode != want.status || e.Error.Code != want.code || !strings.Contains(e.Error.Message, want.text) || e.Error.Hint == "" ||
				resp.Header.Get("Content-Type") != "application/json" || !resp.Close {
				t.Errorf("%.80q: %d %v %s", request, resp.StatusCode, resp.Header, b)
			}
		}
	}
}

// An answer's body that looks like such a refusal passes as it is, wherever it is cut
// into pieces.
func TestBodyIsNoRefusal(t *testing.T) {
	m := newManager(t)
	a := serveUnix(t, Options{Manager: m})
	text := fmt.Sprintf("%-64s", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n400")
	content := strings.Repeat(text, 10_000)
	ref, err := m.store.Put("python", 1, "text/plain", strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	path := "/v1/interpreter/contexts/python/results/" + filepath.Base(ref.Path)
	for range 2 {
		if b, _ := a.call(200, "GET", path, ""); b != content {
			t.Errorf("%d bytes of %d, or others", len(b), len(content))
		}
	}
}
