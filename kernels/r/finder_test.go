package r

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/internal/fixture"
)

func TestFinder(t *testing.T) {
	dir := fixture.Dir(t, 0o755)
	script := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "R"), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	finder := NewFinder(environ.Search{Env: []string{"PATH=" + dir}, Timeout: 20 * time.Second})
	fails := func(has string, packages bool) {
		t.Helper()
		_, err := finder.Find(t.Context())
		missing, ok := err.(*NotFoundError)
		if !ok || !strings.Contains(missing.Error(), has) || missing.NoPackage != packages || missing.Hint() == "" {
			t.Errorf("%v: want one with %q", err, has)
		}
	}
	fails("there is no R", false)
	script("echo hello")
	fails("does not answer as R does", false)
	script("echo oops >&2; exit 3")
	fails("oops", false)
	script("echo 'noise'; echo 'cellard-r: 4.2.2 none'")
	fails("no package IRkernel", true)
	script("echo 'cellard-r: 4.2.2 1.3.2 digest'")
	fails("no package digest", true)
	script("/usr/bin/head -c 10000000 /dev/zero; echo; echo 'cellard-r: 4.2.2 1.3.2'")
	fails("does not answer", false)
	script("echo 'cellard-r: 4.2.2 1.3.2'")
	found, err := finder.Find(t.Context())
	if err != nil || found.Version != "4.2.2" || found.IRkernel != "1.3.2" || found.Program != filepath.Join(dir, "R") {
		t.Errorf("%+v, %v", found, err)
	}
	again, err := finder.Find(t.Context())
	if err != nil || again != found {
		t.Errorf("it is not remembered: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "R")); err != nil {
		t.Fatal(err)
	}
	fails("there is no R", false)
}
