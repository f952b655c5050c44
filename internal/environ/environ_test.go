package environ

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLookup(t *testing.T) {
	env := []string{"A=1", "AB=2", "EMPTY=", "A=3=4", "odd"}
	for name, want := range map[string]string{"A": "3=4", "AB": "2"} {
		if got, ok := Lookup(env, name); !ok || got != want {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
	if got, ok := Lookup(env, "EMPTY"); !ok || got != "" {
		t.Errorf("EMPTY: %q, %v", got, ok)
	}
	for _, name := range []string{"B", "odd", ""} {
		if got, ok := Lookup(env, name); ok {
			t.Errorf("%q: %q", name, got)
		}
	}
}

func TestLookPath(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	write := func(dir, name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write(first, "text", 0o644)
	if err := os.Mkdir(filepath.Join(first, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	inBoth := write(first, "both", 0o755)
	write(second, "both", 0o755)
	text := write(second, "text", 0o755)
	dir := write(second, "dir", 0o755)
	t.Chdir(t.TempDir())
	write(".", "here", 0o755)
	env := []string{"PATH=:.:" + first + ":" + second}
	for name, want := range map[string]string{"both": inBoth, "text": text, "dir": dir, inBoth: inBoth} {
		if got, err := LookPath(env, name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	// What the current directory holds is not a program of ours.
	for _, name := range []string{"here", "none", filepath.Join(first, "text"), filepath.Join(first, "none")} {
		if got, err := LookPath(env, name); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}
