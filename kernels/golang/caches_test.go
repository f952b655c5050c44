package golang

import (
	"slices"
	"testing"
)

// A cell can write to its account's own cache, and what it puts there runs in later
// sessions: what root has prepared comes first, unless the operator names another.
func TestBases(t *testing.T) {
	kept := KeptCache(KeptIn, 1000)
	for _, c := range []struct {
		own, named string
		want       []string
	}{
		{"/home/a/.cache/cellard/go", "", []string{SharedCache, "/home/a/.cache/cellard/go"}},
		{kept, kept, []string{SharedCache, kept}},
		{"/named", "/named", []string{"/named", SharedCache}},
		{"/home/a/.cache/cellard/go", "/readonly", []string{"/readonly", "/home/a/.cache/cellard/go", SharedCache}},
		{KeptCache(KeptIn, 1), KeptCache(KeptIn, 1), []string{KeptCache(KeptIn, 1), SharedCache}},
	} {
		if got := bases(c.own, c.named, 1000); !slices.Equal(got, c.want) {
			t.Errorf("own %s, named %q: %q, want %q", c.own, c.named, got, c.want)
		}
	}
}

// A directory that is named by a relative path would be another one, which cells may write
// to, wherever a kernel is started.
func TestNamed(t *testing.T) {
	for value, want := range map[string]string{"": "", "/named": "/named", "named": "", "./named": ""} {
		if got := named(func(string) string { return value }); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}
