package java

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An archive is made, used, and not used where others could have written it.
func TestPrepare(t *testing.T) {
	for _, j := range javas(t) {
		t.Run(j.Version, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			if err := Prepare(t.Context(), j, dir, os.Environ()); err != nil {
				t.Fatal(err)
			}
			entries, _ := os.ReadDir(dir)
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			path := archive(dir, j)
			if path == "" || len(names) != 3 {
				t.Fatalf("the directory has %q", names)
			}
			before, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := Prepare(t.Context(), j, dir, os.Environ()); err != nil {
				t.Fatal(err)
			}
			if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
				t.Errorf("it was made again (%v)", err)
			}
			s := start(t, Options{Java: j, Cache: dir})
			s.is(t, "1 + 1", "2")
			if maps := readString("/proc/" + itoa(s.m.pid()) + "/maps"); !strings.Contains(maps, path) {
				t.Error("Java does not use the archive")
			}
			// One that is damaged is no hindrance.
			if err := os.WriteFile(path, []byte("nonsense"), 0o644); err != nil {
				t.Fatal(err)
			}
			start(t, Options{Java: j, Cache: dir}).is(t, "1 + 1", "2")
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			s = start(t, Options{Java: j, Cache: dir})
			s.is(t, "1 + 1", "2")
			if s.m.private == "" {
				t.Error("a directory was used that others can write to")
			}
			if Prepare(t.Context(), j, dir, os.Environ()) == nil {
				t.Error("an archive was made where others can write")
			}
		})
	}
}
