package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cellard/cellard/internal/environ"
)

func TestFinder(t *testing.T) {
	dir, newer := t.TempDir(), t.TempDir()
	program := func(dir, name, script string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	finder := NewFinder(environ.Search{Env: []string{"PATH=" + dir + ":" + newer}}, "")
	fails := func(f *Finder, reason string) {
		t.Helper()
		_, err := f.Find(context.Background())
		var missing *NotFoundError
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), reason) || !strings.Contains(missing.Hint(), "20.12") {
			t.Errorf("%v, wanted %q with a hint", err, reason)
		}
	}
	fails(finder, "there is no Node.js")
	for script, reason := range map[string]string{"echo v18.20.4": "too old", "echo v20.11.1": "too old", "echo 3.11": "does not answer as", "exit 3": "exit status 3"} {
		program(dir, "node", script)
		fails(finder, reason)
	}
	program(dir, "node", "echo v18.20.4")
	want := program(newer, "nodejs", "echo v20.12.0") // a second name, further on
	if found, err := finder.Find(context.Background()); err != nil || found.Program != want || found.Version != "20.12.0" {
		t.Errorf("%+v %v", found, err)
	}
	program(newer, "nodejs", "echo v18.20.4")
	want = program(newer, "cellard-node", "echo v24.1.0") // a third: what was installed where node is too old
	if found, err := finder.Find(context.Background()); err != nil || found.Program != want {
		t.Errorf("%+v %v", found, err)
	}
	named := program(newer, "mine", "echo v24.1.0")
	if found, err := NewFinder(environ.Search{Env: []string{"PATH=" + dir, "CELLARD_NODE=" + named}}, "").Find(context.Background()); err != nil || found.Program != named {
		t.Errorf("%+v %v", found, err)
	}
	fails(NewFinder(environ.Search{Env: []string{"PATH=" + dir, "CELLARD_NODE=/no/such"}}, ""), "/no/such: ")
}
