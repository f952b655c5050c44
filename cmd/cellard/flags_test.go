package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSizes(t *testing.T) {
	for s, want := range map[string]int64{"1": 1, "65536": 65536, "64KiB": 65536, "64k": 65536, "64KB": 65536, "1.5MiB": 3 << 19, "2 GiB": 2 << 30, "1TiB": 1 << 40, "7B": 7} {
		if n, err := parseSize(s); err != nil || n != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", s, n, err, want)
		}
	}
	for _, s := range []string{"", "x", "1x", "-1", "1e30", "KiB", "1KiBB", "999999999TiB", "NaN", "Inf", "1 2"} {
		if n, err := parseSize(s); err == nil {
			t.Errorf("parseSize(%q) = %d", s, n)
		}
	}
	for _, n := range []int64{0, 1, 1000, 1024, 1536, 48 << 10, 1 << 20, 3 << 30, 5 << 40} {
		if back, err := parseSize(printSize(n)); err != nil || back != n {
			t.Errorf("%d is printed as %s, which is %d, %v", n, printSize(n), back, err)
		}
	}
}

func TestDefaultAddresses(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", dir)
	socket := "unix://" + filepath.Join(dir, "cellard.sock")
	if os.Getuid() == 0 {
		socket = "unix:///run/cellard.sock"
	}
	if got := strings.Join(defaultAddresses(false), " "); got != socket {
		t.Errorf("no guest: %s", got)
	}
	if got := strings.Join(defaultAddresses(true), " "); got != "vsock://:52 "+socket {
		t.Errorf("a guest: %s", got)
	}
}

func TestRuntimeDir(t *testing.T) {
	base := filepath.Join(t.TempDir(), "a", "b")
	one, err := makeRuntimeDir(base)
	if err != nil {
		t.Fatal(err)
	}
	two, err := makeRuntimeDir(base)
	if err != nil || one == two || filepath.Dir(one) != base {
		t.Errorf("%s, then %s, %v", one, two, err)
	}
	for _, dir := range []string{base, one} {
		if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm()&0o066 != 0 {
			t.Errorf("%s: %v %v", dir, fi.Mode(), err)
		}
	}
	// Where others can write, they could put what they like.
	if err := os.Chmod(base, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := makeRuntimeDir(base); err == nil {
		t.Error("a directory that all can write to was taken")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(one, link); err != nil {
		t.Fatal(err)
	}
	if _, err := makeRuntimeDir(link); err == nil {
		t.Error("a link was taken")
	}
}
