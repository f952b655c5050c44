package golang_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cellard/cellard/kernels/golang"
)

// TestPreparedAnew has that a kernel whose start failed is started by the next cell.
func TestPreparedAnew(t *testing.T) {
	// What was built, but for one file that is damaged.
	built, own := os.Getenv(golang.CacheVariable), t.TempDir()
	files, _ := filepath.Glob(filepath.Join(built, "go1*", "*"))
	var damaged []string
	for _, file := range files {
		to := filepath.Join(own, filepath.Base(filepath.Dir(file)), filepath.Base(file))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if filepath.Base(file) == "linker.json" {
			damaged = append(damaged, to)
			err = os.WriteFile(to, []byte("{"), 0o600)
		} else {
			err = os.Symlink(file, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(golang.CacheVariable, own)
	s := start(t)
	for range 2 {
		if r := s.run("1 + 1"); r.err == nil || r.err.Name != "ToolchainError" || !strings.Contains(r.err.Value, "linker.json") {
			t.Fatalf("%q %v", r.text(), r.err)
		}
	}
	for _, to := range damaged {
		b, err := os.ReadFile(filepath.Join(built, filepath.Base(filepath.Dir(to)), "linker.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.is("1 + 1", "", "2")
}
