package kernels

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// write makes a kernelspec in a data directory.
func write(t *testing.T, data, name, text string) string {
	t.Helper()
	dir := filepath.Join(data, "kernels", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kernel.json"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func byName(specs []Spec) map[string]Spec {
	m := make(map[string]Spec)
	for _, s := range specs {
		m[s.Name] = s
	}
	return m
}

func TestDiscover(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	dir := write(t, first, "IR", `{"argv": ["R", "{connection_file}"], "display_name": "R", "language": "R",
		"interrupt_mode": "message", "env": {"A": "1"}, "metadata": {"x": [1]}, "unknown": true}`)
	write(t, second, "ir", `{"argv": ["other"], "display_name": "Other", "language": "R"}`)
	write(t, second, "plain", `{"argv": ["p"]}`)
	write(t, second, "no spaces", `{"argv": ["p"]}`)
	if err := os.MkdirAll(filepath.Join(second, "kernels", "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(second, "kernels", "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	elsewhere := write(t, t.TempDir(), "real", `{"argv": ["linked"]}`)
	if err := os.Symlink(elsewhere, filepath.Join(second, "kernels", "linked")); err != nil {
		t.Fatal(err)
	}

	specs := Discover([]string{filepath.Join(first, "none"), first, second})
	found := byName(specs)
	if len(specs) != 3 || len(found) != 3 {
		t.Fatalf("got %d kernelspecs, want ir, linked and plain: %+v", len(specs), specs)
	}
	r := found["ir"]
	if r.Err != nil || r.Dir != dir || r.DisplayName != "R" || r.Language != "R" || r.InterruptMode != "message" ||
		!slices.Equal(r.Argv, []string{"R", "{connection_file}"}) || r.Env["A"] != "1" || r.Metadata["x"] == nil {
		t.Errorf("ir: %+v", r)
	}
	if p := found["plain"]; p.Err != nil || p.InterruptMode != "signal" {
		t.Errorf("plain: %+v", p)
	}
	if found["linked"].Argv[0] != "linked" {
		t.Errorf("linked: %+v", found["linked"])
	}
}

// A kernelspec that can't be used is told, and costs no other.
func TestBadSpecs(t *testing.T) {
	data := t.TempDir()
	for name, text := range map[string]string{
		"syntax": `{`, "type": `{"argv": "python"}`, "argv": `{"argv": []}`, "none": `{}`, "env": `{"argv": ["a"], "env": {"A": 1}}`,
		"mode": `{"argv": ["a"], "interrupt_mode": "shout"}`, "huge": `{"argv": ["` + strings.Repeat("a", maxSpec) + `"]}`,
	} {
		write(t, data, name, text)
	}
	write(t, data, "good", `{"argv": ["a"]}`)
	for name, make := range map[string]func(string) error{
		"fifo": func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"dir":  func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		dir := write(t, data, name, "")
		if err := os.Remove(filepath.Join(dir, "kernel.json")); err != nil {
			t.Fatal(err)
		}
		if err := make(filepath.Join(dir, "kernel.json")); err != nil {
			t.Fatal(err)
		}
	}
	specs := Discover([]string{data})
	if len(specs) != 10 {
		t.Fatalf("%d kernelspecs, want 10", len(specs))
	}
	for _, spec := range specs {
		if (spec.Err == nil) != (spec.Name == "good") {
			t.Errorf("%s: error %v", spec.Name, spec.Err)
		}
		if spec.Err != nil && !strings.Contains(spec.Err.Error(), spec.Name) {
			t.Errorf("%s: the error doesn't say which: %v", spec.Name, spec.Err)
		}
	}
}

func TestSearchPath(t *testing.T) {
	for _, c := range []struct {
		name string
		env  []string
		want []string
	}{
		{"nothing set", nil, []string{"/usr/local/share/jupyter", "/usr/share/jupyter"}},
		{"a home", []string{"HOME=/h"}, []string{"/h/.local/share/jupyter", "/usr/local/share/jupyter", "/usr/share/jupyter"}},
		{"all", []string{"HOME=/h", "JUPYTER_PATH=/a:/b/:relative:", "VIRTUAL_ENV=/v", "CONDA_PREFIX=/c", "XDG_DATA_HOME=/x"},
			[]string{"/a", "/b", "/v/share/jupyter", "/c/share/jupyter", "/x/jupyter", "/h/.local/share/jupyter", "/usr/local/share/jupyter", "/usr/share/jupyter"}},
		{"a data directory", []string{"HOME=/h", "JUPYTER_DATA_DIR=/d", "XDG_DATA_HOME=/x"},
			[]string{"/d", "/h/.local/share/jupyter", "/usr/local/share/jupyter", "/usr/share/jupyter"}},
		{"each once", []string{"HOME=/h", "JUPYTER_PATH=/usr/share/jupyter:/usr/share/jupyter/"},
			[]string{"/usr/share/jupyter", "/h/.local/share/jupyter", "/usr/local/share/jupyter"}},
		{"the last counts", []string{"HOME=/h", "HOME=/i"}, []string{"/i/.local/share/jupyter", "/usr/local/share/jupyter", "/usr/share/jupyter"}},
	} {
		if got := SearchPath(c.env); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
