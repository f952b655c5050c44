package golang_test

import (
	"archive/zip"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestIsComplete(t *testing.T) {
	s := start(t)
	for code, want := range map[string]string{
		"x := 1":                    "complete",
		"func f() {":                "incomplete",
		"for {\n\tif true {":        "incomplete",
		"fmt.Println(":              "incomplete",
		"x := `abc":                 "incomplete",
		"/* a":                      "incomplete",
		"x := = 1":                  "invalid",
		"}":                         "invalid",
		"x := \"abc":                "invalid",
		"":                          "complete",
		"if true {\n} else {\n}\nx": "complete",
	} {
		got, err := s.k.IsComplete(t.Context(), code)
		if err != nil || got.Status != want {
			t.Errorf("%q: %v %v, want %s", code, got, err, want)
		}
	}
	if got, _ := s.k.IsComplete(t.Context(), "for {\n\tif true {"); got.Indent != "\t\t" {
		t.Errorf("indent %q", got.Indent)
	}
}

func TestComplete(t *testing.T) {
	s := start(t)
	s.is("import \"strings\"\ntype point struct{ xCoord, yCoord int }\nfunc (p point) area() int { return 0 }\nvalue := point{}\nvar pé = 1", "", "")
	for _, c := range []struct {
		code       string
		start, end int
		want       []string
		not        string
	}{
		{"val", 0, 3, []string{"value"}, "point"},
		{"value.", 0, 6, []string{"value.xCoord", "value.yCoord", "value.area"}, "value"},
		{"é := 1\nvalue.x", 7, 14, []string{"value.xCoord"}, "value.yCoord"},
		{"strings.ToU", 0, 11, []string{"strings.ToUpper"}, "strings.ToLower"},
		{"local := strings.Builder{}\nlocal.Wri", 27, 36, []string{"local.WriteString"}, "local.Len"},
		{"func f() {\n\tinner := value\n\tinner.y", 28, 35, []string{"inner.yCoord"}, "inner.xCoord"},
		{"fo", 0, 2, []string{"for"}, "if"},
		{"dis", 0, 3, []string{"display"}, ""},
		{"import \"os\"\nos.Gete", 12, 19, []string{"os.Getenv"}, "os.Setenv"},
		{"math.Flo", 0, 8, []string{"math.Floor"}, ""},
		{"pé", 0, 2, []string{"pé"}, ""},
	} {
		got, err := s.k.Complete(t.Context(), c.code, len([]rune(c.code)))
		if err != nil || got.Start != c.start || got.End != c.end || len(got.Types) != len(got.Matches) {
			t.Errorf("%q: %+v %v, want %d to %d", c.code, got, err, c.start, c.end)
		}
		for _, w := range c.want {
			if !slices.Contains(got.Matches, w) {
				t.Errorf("%q: %s is not in %q", c.code, w, got.Matches)
			}
		}
		if slices.Contains(got.Matches, c.not) {
			t.Errorf("%q: %s is in %q", c.code, c.not, got.Matches)
		}
	}
	for _, code := range []string{"", ".", "x.y.z.", "\"abc.", "12.", "((((", "value.area().", "nosuch.x"} {
		if _, err := s.k.Complete(t.Context(), code, len(code)); err != nil {
			t.Errorf("%q: %v", code, err)
		}
	}
}

func TestInspect(t *testing.T) {
	s := start(t)
	s.is("import \"strings\"\nfunc twice(n int) int { return 2 * n }\nvar b strings.Builder", "", "")
	for _, c := range []struct {
		code   string
		cursor int
		has    []string
	}{
		{"twice(3)", 2, []string{"func", "twice(n int) int"}},
		{"strings.ToUpper(\"\")", 10, []string{"func strings.ToUpper(s string) string", "mapped to their upper case"}},
		{"b.WriteString", 5, []string{"WriteString(s string)", "appends the contents"}},
		{"strings", 3, []string{"package strings"}},
		{"len", 1, []string{"len"}},
	} {
		got, err := s.k.Inspect(t.Context(), c.code, c.cursor, 0)
		text, _ := got.Data["text/plain"].(string)
		if err != nil || !got.Found {
			t.Errorf("%q: %+v %v", c.code, got, err)
		}
		for _, h := range c.has {
			if !strings.Contains(text, h) {
				t.Errorf("%q: %q is not in %q", c.code, h, text)
			}
		}
	}
	if got, err := s.k.Inspect(t.Context(), "nosuch", 3, 0); err != nil || got.Found {
		t.Errorf("nosuch: %+v %v", got, err)
	}
}

// TestModules gets a module from a proxy, here a directory.
func TestModules(t *testing.T) {
	proxyWith(t, "example.com/greet", map[string]string{
		"greet.go":     "// Package greet greets.\npackage greet\n\nimport (\n\t\"example.com/greet/sub\"\n\t\"strings\"\n)\n\n// Hi greets.\nfunc Hi(n string) string { return strings.ToUpper(\"hi \" + n) + sub.End }\n",
		"sub/sub.go":   "package sub\n\nconst End = \"!\"\n",
		"inc/c.go":     "package inc\n\n// static int twice(int n) { return 2 * n; }\nimport \"C\"\n\nfunc Twice(n int) int { return int(C.twice(C.int(n))) }\n",
		"other/oth.go": "package other\n\ntype T struct{ A int }\n\nfunc (t T) Next() T { return T{t.A + 1} }\n",
	})
	s := start(t)
	s.fails("import \"example.com/greet\"\ngreet.Hi(\"x\")", "CompileError", "%get example.com/greet")
	s.fails("%get example.com/nosuch", "CompileError", "example.com/nosuch")
	r := s.run("%get example.com/greet@v1.0.0\nimport \"example.com/greet\"\ngreet.Hi(\"you\")")
	if r.err != nil || r.text() != "HI YOU!" {
		t.Fatalf("%q %v", r.text(), r.err)
	}
	s.is("greet.Hi(\"again\")", "", "HI AGAIN!")
	s.is("go get example.com/greet/other\nimport \"example.com/greet/other\"\nt := other.T{A: 1}", "", "")
	s.is("t.Next().Next().A", "", "3")
	s.is("import \"example.com/greet/inc\"\ninc.Twice(21)", "", "42")
}

// proxyWith makes the session's proxy a directory that has one module, at v1.0.0.
func proxyWith(t *testing.T, module string, files map[string]string) {
	t.Helper()
	proxy, mods := t.TempDir(), t.TempDir()
	publish(t, proxy, module, "v1.0.0", files)
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOMODCACHE", mods)
	t.Cleanup(func() { // the module cache is read-only
		_ = filepath.WalkDir(mods, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				return os.Chmod(path, 0o755)
			}
			return nil
		})
	})
}

// publish puts a module into a proxy's directory.
func publish(t *testing.T, proxy, module, version string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	mod := "module " + module + "\n\ngo 1.22\n"
	for name, text := range map[string]string{"list": version + "\n", version + ".mod": mod, version + ".info": `{"Version":"` + version + `"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	files["go.mod"] = mod
	for name, text := range files {
		w, err := z.Create(module + "@" + version + "/" + name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}
