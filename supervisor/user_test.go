package supervisor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
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
	for _, home := range []string{link, filepath.Join(link, "home")} {
		a := &account{home: home, credential: me}
		if err := a.makeHome(); err == nil {
			t.Errorf("%s was made by way of a link", home)
		}
	}
	if names, err := os.ReadDir(victim); err != nil || len(names) > 0 {
		t.Errorf("behind the link there is %v, %v", names, err)
	}
}
