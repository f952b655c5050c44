package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cellard/cellard/internal/fixture"
)

// TestHome: a home is made once, and never where a link leads: the one who put the link
// there would own what it leads to.
func TestHome(t *testing.T) {
	me := &syscall.Credential{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}
	dir := t.TempDir()
	a := &account{home: filepath.Join(dir, "home"), credential: me}
	for range 2 {
		if err := a.makeHome(); err != nil {
			t.Fatal(err)
		}
	}
	if fi, err := os.Stat(a.home); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("the home is %v, %v", fi, err)
	}

	victim := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	a = &account{home: filepath.Join(link, "home"), credential: me}
	if err := a.makeHome(); err == nil {
		t.Errorf("%s was made by way of a link", a.home)
	}
	a = &account{home: link, credential: me}
	if err := a.makeHome(); err != nil {
		t.Error(err)
	}
	aside, _ := filepath.Glob(link + ".aside-*")
	if fi, err := os.Lstat(link); err != nil || !fi.IsDir() || len(aside) != 1 {
		t.Errorf("in place of the link there is %v, %v, and aside %q", fi, err, aside)
	}
	if names, err := os.ReadDir(victim); err != nil || len(names) > 0 {
		t.Errorf("behind the link there is %v, %v", names, err)
	}
}

// Whatever lies at .runtime is no reason not to start: it is moved aside, never followed,
// and the log says so.
func TestStateDirIsTaken(t *testing.T) {
	outside := t.TempDir()
	for name, plant := range map[string]func(string) error{
		"link": func(f string) error { return os.Symlink(outside, f) },
		"loop": func(f string) error { return os.Symlink(f, f) },
		"file": func(f string) error { return os.WriteFile(f, nil, 0o600) },
		"fifo": func(f string) error { return syscall.Mkfifo(f, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			workspace := fixture.Dir(t, 0o777)
			if err := plant(filepath.Join(workspace, ".runtime")); err != nil {
				t.Fatal(err)
			}
			a := newAgent(t, func(o *Options) { o.Workspace = workspace })
			a.ok(a.cell("print a"))
			aside, _ := filepath.Glob(filepath.Join(workspace, ".runtime.aside-*"))
			if fi, err := os.Lstat(filepath.Join(workspace, ".runtime")); err != nil || !fi.IsDir() || len(aside) != 1 {
				t.Errorf("%v, %v; aside: %q", fi, err, aside)
			}
			if log := a.logs.String(); len(aside) == 1 && !strings.Contains(log, aside[0]) {
				t.Errorf("the log does not tell of %q: %s", aside, log)
			}
		})
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("behind the link there is %v, %v", left, err)
	}
}
