package server

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/api"
)

func TestResult(t *testing.T) {
	m := newManager(t)
	a := serveUnix(t, Options{Manager: m})
	content := strings.Repeat("<script>alert(1)</script>", 10_000)
	ref, err := m.store.Put("python", 1, "text/html", strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	path := "/v1/interpreter/contexts/python/results/" + filepath.Base(ref.Path)
	b, h := a.call(200, "GET", path, "")
	sum := sha256.Sum256([]byte(b))
	if b != content || hex.EncodeToString(sum[:]) != ref.SHA256 {
		t.Errorf("%d bytes, not those that were put", len(b))
	}
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Etag": `"` + ref.SHA256 + `"`, "X-Content-Type-Options": "nosniff",
		"Content-Length": "250000", "Accept-Ranges": "bytes", "Cache-Control": "private, max-age=31536000, immutable",
	} {
		if h.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, h.Get(name), want)
		}
	}
	csp := h.Get("Content-Security-Policy")
	if !strings.Contains(csp, "sandbox") || !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "allow-scripts") {
		t.Errorf("CSP %q", csp)
	}
	if b, h := a.call(200, "HEAD", path, ""); b != "" || h.Get("Content-Length") != "250000" {
		t.Errorf("HEAD: %d bytes, %v", len(b), h)
	}
	if b, h := a.call(206, "GET", path, "", "Range", "bytes=1-6"); b != "script" || h.Get("Content-Range") != "bytes 1-6/250000" {
		t.Errorf("range: %q %v", b, h)
	}
	a.refused(416, api.CodeInvalidRequest, "GET", path, "", "Range", "bytes=250000-")
	if _, h := a.call(416, "GET", path, "", "Range", "bytes=250000-"); h.Get("Content-Range") != "bytes */250000" || h.Get("Cache-Control") != "no-store" || h.Get("ETag") != "" {
		t.Errorf("a refused range: %v", h)
	}
	a.call(416, "HEAD", path, "", "Range", "bytes=250000-")
	a.refused(412, api.CodeInvalidRequest, "GET", path, "", "If-Match", `"other"`)
	a.call(304, "GET", path, "", "If-None-Match", `"`+ref.SHA256+`"`)

	a.refused(404, api.CodeNotFound, "GET", "/v1/interpreter/contexts/python/results/1-none.txt", "")
	a.refused(404, api.CodeNotFound, "GET", "/v1/interpreter/contexts/other/results/"+filepath.Base(ref.Path), "")
	for _, file := range []string{"..%2f..%2f..%2f..%2fetc%2fpasswd", "%2e%2e", "%00", ".", "a:b"} {
		a.refused(404, api.CodeNotFound, "GET", "/v1/interpreter/contexts/python/results/"+file, "")
	}
	if err := m.store.Drop("python"); err != nil {
		t.Fatal(err)
	}
	a.call(404, "GET", path, "")
}
