package node

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// What a cell does with Node's debugging interface does not take it from the kernel.
func TestCellsInspector(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		s.run("let x = 41; const inspector = require('inspector')").out("", "")
		for _, code := range []string{
			"inspector.close(); process._debugEnd()",
			"(await import('node:inspector')).close()",
			"try { inspector.open(0) } catch (e) { console.log(e.code) }",
		} {
			s.run(code).ok()
			s.within(soon, "for (;;);").stopped()
			s.run("x + 1").text("42")
		}
		for _, code := range []string{
			"inspector.waitForDebugger()",
			"const s = new inspector.Session(); s.connect(); s.post('Debugger.enable'); s.post('Debugger.pause'); for (;;);",
			"debugger; for (;;);",
		} {
			s.within(soon, code).stopped()
			s.run("x + 1").text("42").out("", "")
		}
	})
}

// Only who has been told the path of the interface's address can have it.
func TestInspectorIsNotListed(t *testing.T) {
	each(t, func(t *testing.T, program string) {
		s := open(t, JavaScript, program)
		r := s.run("require('inspector').url()").ok()
		text, _ := r.Shown("execute_result")[0]["text/plain"].(string)
		u, err := url.Parse(strings.Trim(text, "'"))
		if err != nil {
			t.Fatal(err)
		}
		secret := strings.Trim(u.Path, "/")
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		for _, path := range []string{"/", "/json", "/json/list", "/json/version", "/json/protocol", "/json/activate/"} {
			res, err := client.Get("http://" + u.Host + path)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(res.Body)
			res.Body.Close()
			if len(secret) < 36 || err != nil || res.StatusCode < 400 || strings.Contains(string(b), secret) {
				t.Errorf("%s: %s: %s, %v; the secret is %q", path, res.Status, b, err, secret)
			}
		}
		if _, err := connectInspector(t.Context(), "ws://"+u.Host+"/"+strings.Repeat("0", len(secret))); err == nil {
			t.Error("connected by another path")
		}
	})
}
