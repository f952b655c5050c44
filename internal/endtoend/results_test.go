package endtoend

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/api"
)

func resultPath(contextID, file string) string {
	return "/v1/interpreter/contexts/" + contextID + "/results/" + path.Base(file)
}

// A ref's bytes are there by its path, for the next cell, and over HTTP.
func TestResultsEndpoint(t *testing.T) {
	a := start(t, config{})
	x := a.run(object{"code": "from IPython.display import HTML, display\ndisplay(HTML('<p>' + 'ü' * 50000))\nprint('z' * 2000000)"})
	if x.Status != api.StatusOK || len(x.Results) != 1 || len(x.Overflow) != 1 {
		t.Fatalf("%s", show(x))
	}
	ref := x.Results[0].Refs["text/html"]
	whole := "<p>" + strings.Repeat("ü", 50000)
	sum := sha256.Sum256([]byte(whole))
	if ref.Bytes != int64(len(whole)) || ref.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("%+v", ref)
	}
	if b, err := os.ReadFile(ref.Path); err != nil || string(b) != whole {
		t.Errorf("%s: %d bytes, %v", ref.Path, len(b), err)
	}
	if got := a.cell("python", "len(open("+quote(ref.Path)+").read())"); got != "50003" {
		t.Error(got)
	}
	url := resultPath("python", ref.Path)
	ans := a.call("GET", url, nil)
	h := ans.header
	if ans.status != 200 || string(ans.body) != whole || !strings.HasPrefix(h.Get("Content-Type"), "text/html") || h.Get("ETag") != `"`+ref.SHA256+`"` ||
		h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%d %v, %d bytes", ans.status, h, len(ans.body))
	}
	ans = a.call("HEAD", url, nil)
	if ans.status != 200 || len(ans.body) != 0 || ans.header.Get("Content-Length") != itoa(int64(len(whole))) {
		t.Errorf("HEAD: %d %v", ans.status, ans.header)
	}
	ans = a.call("GET", url, nil, "Range", "bytes=3-6")
	if ans.status != http.StatusPartialContent || string(ans.body) != "üü" || ans.header.Get("Content-Range") != "bytes 3-6/100003" {
		t.Errorf("Range: %d %q %v", ans.status, ans.body, ans.header)
	}
	if ans = a.call("GET", url, nil, "Range", "bytes=200000-"); ans.status != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("Range past the end: %d", ans.status)
	}
	if ans = a.call("GET", url, nil, "If-None-Match", h.Get("ETag")); ans.status != http.StatusNotModified || len(ans.body) != 0 {
		t.Errorf("If-None-Match: %d", ans.status)
	}
	over := x.Overflow[0]
	if ans = a.call("GET", resultPath("python", over.Path), nil); ans.status != 200 || string(ans.body) != strings.Repeat("z", 2000000)+"\n" {
		t.Errorf("overflow: %d, %d bytes", ans.status, len(ans.body))
	}
	if over.Stream != "stdout" || over.Bytes != 2000001 || over.Dropped != 0 || len(x.Stdout) > 1<<20+200 {
		t.Errorf("%+v, %d inline", over, len(x.Stdout))
	}
	a.refused(404, api.CodeNotFound, "GET", resultPath("python", "none.png"), nil)
	a.refused(404, api.CodeNotFound, "GET", resultPath("nobody", ref.Path), nil)
	for _, evil := range []string{"..%2f..%2fetc%2fpasswd", "%2e%2e", "..%2fx"} {
		if ans := a.call("GET", "/v1/interpreter/contexts/python/results/"+evil, nil); ans.status != 404 && ans.status != 400 {
			t.Errorf("%s: %d %.100s", evil, ans.status, ans.body)
		}
	}
	a.remove("python")
	if ans := a.call("GET", url, nil); ans.status != 404 && ans.status != 410 {
		t.Errorf("after the delete: %d", ans.status)
	}
	if _, err := os.Stat(ref.Path); err == nil {
		t.Error("the file outlives its context")
	}
}

// The oldest go first, and that is said.
func TestQuota(t *testing.T) {
	a := start(t, config{args: []string{"--store-quota", "300KB"}})
	var refs []api.Ref
	for i := range 4 {
		x := a.run(object{"code": "from IPython.display import HTML, display\ndisplay(HTML('" + itoa(int64(i)) + "' * 100000))"})
		if len(x.Results) != 1 || x.LostBytes != 0 {
			t.Fatalf("%s", show(x))
		}
		refs = append(refs, x.Results[0].Refs["text/html"])
	}
	a.refused(410, api.CodeGone, "GET", resultPath("python", refs[0].Path), nil)
	if ans := a.call("GET", resultPath("python", refs[3].Path), nil); ans.status != 200 || string(ans.body) != strings.Repeat("3", 100000) {
		t.Errorf("the newest: %d", ans.status)
	}
}

func TestTablesAndCharts(t *testing.T) {
	for _, p := range pythons.All(t) {
		t.Run(p.Name, func(t *testing.T) {
			a := start(t, config{python: p.Path})
			x := a.run(object{"timeoutMs": 0, "code": "import pandas as pd\npd.DataFrame({'month': ['Jan', 'Feb'], 'revenue': [120, None]})"})
			if x.Status != api.StatusOK || len(x.Results) != 1 {
				t.Fatalf("%s", show(x))
			}
			var table mime.Table
			if err := json.Unmarshal(x.Results[0].Data[mime.TableType], &table); err != nil {
				t.Fatal(err, show(x))
			}
			if got, want := show(table), `{"columns":["month","revenue"],"types":["string","number"],"rows":[["Jan",120],["Feb",null]],"index":null,"rowCount":2,"truncated":false}`; got != want {
				t.Errorf("%s, wanted %s", got, want)
			}
			for _, m := range []string{"text/plain", "text/html"} {
				if x.Results[0].Data[m] == nil {
					t.Errorf("no %s", m)
				}
			}
			x = a.run(object{"timeoutMs": 0, "code": "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()"})
			var png []byte
			if len(x.Results) != 1 {
				t.Fatalf("%s", show(x))
			}
			if err := json.Unmarshal(x.Results[0].Data["image/png"], &png); err != nil || !strings.HasPrefix(string(png), "\x89PNG\r\n\x1a\n") {
				t.Errorf("%s, %v", show(x), err)
			}
		})
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
