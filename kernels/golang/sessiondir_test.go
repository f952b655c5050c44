package golang_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLeftDirectories has that a kernel removes what one that was killed has left, and
// nothing of one that lives.
func TestLeftDirectories(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	first := start(t)
	first.is("x := 1", "", "")
	own, _ := filepath.Glob(filepath.Join(dir, "cellard-go-kernel-*"))
	if len(own) != 1 {
		t.Fatalf("directories: %v", own)
	}
	long := time.Now().Add(-time.Hour)
	left, fresh, agents := filepath.Join(dir, "cellard-go-kernel-1"), filepath.Join(dir, "cellard-go-kernel-2"), filepath.Join(dir, "cellard-go-3")
	for _, path := range []string{left, fresh, agents} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "c1.a"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{left, agents, own[0]} {
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	start(t).is("2", "", "2")
	if _, err := os.Stat(left); err == nil {
		t.Errorf("%s is still there", left)
	}
	for _, path := range []string{fresh, agents, own[0]} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	first.is("y := x + 1\ny", "", "2")
}
