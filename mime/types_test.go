package mime

import (
	"regexp"
	"testing"
)

func TestTypes(t *testing.T) {
	for name, want := range map[string]string{
		"a.png": "image/png", "A.PNG": "image/png", "dir.d/a.jpg": "image/jpeg", "a.svg": "image/svg+xml", "a.html": "text/html",
		"a.csv": "text/csv", "a.json": "application/json", "a.pdf": "application/pdf", "a.md": "text/markdown", "a.txt": "text/plain",
		"a.parquet": "application/vnd.apache.parquet", "a.xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
		"a.tar.gz": "application/gzip", "a": Octets, "a.": Octets, "dir.png/a": Octets, "a.unknown": Octets, "": Octets, ".txt": "text/plain",
	} {
		if got := ByExtension(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	for typ, want := range map[string]string{
		"image/png": ".png", "IMAGE/PNG": ".png", "text/html; charset=utf-8": ".html", "application/vnd.runtime.table+json": ".json",
		"application/geo+json": ".geojson", "application/vnd.vegalite.v5+json": ".json", "application/mathml+xml": ".xml", "image/x-new": ".bin",
		"text/x-new": ".txt", "application/vnd.plotly.v1+html": ".txt", "text/latex": ".tex", "application/javascript": ".js",
		Octets: ".bin", "": ".txt", "../../x": ".txt",
	} {
		if got := Extension(typ); got != want {
			t.Errorf("%q: got %q, want %q", typ, got, want)
		}
	}
}

func TestKinds(t *testing.T) {
	binary := []string{"image/png", "image/jpeg", "image/gif", "Image/WebP", "audio/wav", "video/mp4", "font/woff2", "application/pdf", Octets,
		"application/zip", "application/vnd.apache.parquet", "application/epub+zip",
		"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "application/vnd.ms-excel", "application/vnd.oasis.opendocument.text"}
	text := []string{"text/plain", "text/html", "text/latex", "image/svg+xml", "application/javascript", "application/xml", "application/xhtml+xml",
		"application/vnd.bokehjs_exec.v0", "application/x-tex", "application/yaml", "", "nonsense"}
	json := []string{"application/json", "application/json; charset=utf-8", TableType, "application/vnd.plotly.v1+json", "model/gltf+json"}
	check := func(types []string, isBinary, isJSON bool) {
		for _, typ := range types {
			if got := IsBinary(typ); got != isBinary {
				t.Errorf("IsBinary(%q) = %v", typ, got)
			}
			if got := IsJSON(typ); got != isJSON {
				t.Errorf("IsJSON(%q) = %v", typ, got)
			}
		}
	}
	check(binary, true, false)
	check(text, false, false)
	check(json, false, true)
}

// TestTable holds the tables against each other.
func TestTable(t *testing.T) {
	ending := regexp.MustCompile(`^\.[a-z0-9]{1,12}$`)
	kind := regexp.MustCompile(`^[a-z]+/[a-z0-9.+-]+$`)
	for e, typ := range byExtension {
		if !kind.MatchString(typ) {
			t.Errorf("%s: %q is no MIME type", e, typ)
		}
		back := Extension(typ)
		if !ending.MatchString(back) {
			t.Errorf("%s: the ending of %q is %q", e, typ, back)
		}
		if again := ByExtension("x" + back); again != typ {
			t.Errorf("%s is %q, its ending %q is %q", e, typ, back, again)
		}
	}
	first := map[string]string{}
	for e, typ := range byExtension {
		if other, ok := first[typ]; ok && preferred[typ] == "" {
			t.Errorf("%q has the endings %s and %s, and none is preferred", typ, other, e)
		}
		first[typ] = e
	}
	for typ, e := range preferred {
		of := byExtension[e]
		if of == "" || IsBinary(of) != IsBinary(typ) || IsJSON(of) != IsJSON(typ) {
			t.Errorf("%q has the ending %s, which is %q", typ, e, of)
		}
	}
}
