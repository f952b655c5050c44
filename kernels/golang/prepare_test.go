package golang_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cellard/cellard/kernels/golang"
)

// damagedBuild is a cache whose build lacks nothing, but has a file that is damaged; mend
// mends it.
func damagedBuild(t *testing.T) (mend func()) {
	t.Helper()
	own := ownBuild(t)
	kept := map[string][]byte{}
	files, _ := filepath.Glob(filepath.Join(own, "go1*", "linker.json"))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err == nil {
			kept[file], err = b, os.Remove(file)
		}
		if err == nil {
			err = os.WriteFile(file, []byte("{"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for file, b := range kept {
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPreparedAnew has that a kernel whose start failed is started by the next cell, which
// tells why the one before failed.
func TestPreparedAnew(t *testing.T) {
	mend := damagedBuild(t)
	s := start(t)
	for range 2 {
		if r := s.run("1 + 1"); r.err == nil || r.err.Name != "ToolchainError" || !strings.Contains(r.err.Value, "linker.json") {
			t.Fatalf("%q %v", r.text(), r.err)
		}
	}
	mend()
	r := s.run("1 + 1")
	if said := r.Stream("stderr"); r.err != nil || r.text() != "2" || !strings.Contains(said, "linker.json") || !strings.Contains(said, "trying again") {
		t.Errorf("%q %q %v", r.text(), said, r.err)
	}
}

// TestStartFails has that an agent's kernel whose preparation fails doesn't start: cells
// would prepare it anew, and count that.
func TestStartFails(t *testing.T) {
	mend := damagedBuild(t)
	t.Setenv(golang.WaitVariable, "1")
	if _, err := start(t).k.Info(); err == nil || !strings.Contains(err.Error(), "linker.json") {
		t.Errorf("the start of what is damaged: %v", err)
	}
	mend()
	if _, err := start(t).k.Info(); err != nil {
		t.Error(err)
	}
}
