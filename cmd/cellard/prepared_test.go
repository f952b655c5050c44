package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/cellard/cellard/internal/gocache"
	"github.com/cellard/cellard/kernels"
	"github.com/cellard/cellard/kernels/golang"
)

func glob(dir, pattern string) []string {
	all, _ := filepath.Glob(filepath.Join(dir, pattern))
	return all
}

// The list tells that Go's first start has something to build, as long as it has.
func TestListUnprepared(t *testing.T) {
	if err := gocache.Setup(); err != nil {
		t.Fatal(err)
	}
	built := os.Getenv(golang.CacheVariable)
	list := func(c *kernels.Catalogue) string {
		var out bytes.Buffer
		if code := listLanguages(c.Languages(t.Context()), &out); code != 0 {
			t.Errorf("code %d", code)
		}
		return regexp.MustCompile(`(?m)^go .*$`).FindString(out.String())
	}
	if line := list(kernels.New(kernels.Options{})); !regexp.MustCompile(`^go +ready .*/go$`).MatchString(line) {
		t.Errorf("prepared: %q", line)
	}
	empty := t.TempDir()
	t.Setenv(golang.CacheVariable, filepath.Join(empty, "own"))
	t.Setenv("HOME", empty)
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("TMPDIR", empty)
	for _, dir := range glob(built, "go1*") {
		if len(glob(golang.SharedCache, filepath.Base(dir))) > 0 {
			t.Fatalf("%s has what these sources build: remove it for this test", golang.SharedCache)
		}
	}
	if line := list(kernels.New(kernels.Options{})); !regexp.MustCompile(`^go +ready .*/go: its first start builds .*cellard languages install go`).MatchString(line) {
		t.Errorf("not prepared: %q", line)
	}
	for _, name := range []string{"own", ".cache", "cellard-go-*"} {
		if left := glob(empty, name); len(left) > 0 {
			t.Errorf("a look has made %v", left)
		}
	}
	// In the home of whoever cells run as.
	home := filepath.Join(empty, "home")
	if err := os.MkdirAll(filepath.Join(home, ".cache", "cellard"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(built, filepath.Join(home, ".cache", "cellard", "go")); err != nil {
		t.Fatal(err)
	}
	if line := list(kernels.New(kernels.Options{Env: append(os.Environ(), "HOME="+home)})); !regexp.MustCompile(`/go$`).MatchString(line) {
		t.Errorf("prepared in the home of cells: %q", line)
	}
}
