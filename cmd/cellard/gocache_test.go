package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/cellard/cellard/kernels/golang"
)

// What Go cells are built with stays for an account without a home, in a directory that
// nobody else has made.
func TestKeepGoCache(t *testing.T) {
	// Of no account, unless it is this process's: the home of that may be its own.
	uid := os.Getuid()
	if uid == 0 {
		uid = 54321
	}
	name := "cellard-go-" + strconv.Itoa(uid)
	kept := func(temp string) string {
		t.Setenv(golang.CacheVariable, "")
		if err := keepGoCache(uid, temp); err != nil {
			t.Error(err)
		}
		return os.Getenv(golang.CacheVariable)
	}
	home := uid == os.Getuid() // what the account has stays by itself
	temp := t.TempDir()
	dir := filepath.Join(temp, name)
	want := dir
	if home {
		want = ""
	}
	if got := kept(temp); got != want {
		t.Errorf("where there is none yet: %q", got)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("it is made before a Go cell needs it")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, uid, -1); err != nil {
		t.Fatal(err)
	}
	if got := kept(temp); got != want {
		t.Errorf("the account's: %q", got)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if got := kept(temp); got != "" {
		t.Errorf("one that all can write to: %q", got)
	}
	other := filepath.Join(temp, "other")
	if err := os.Rename(dir, other); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, dir); err != nil {
		t.Fatal(err)
	}
	if got := kept(temp); got != "" {
		t.Errorf("a link: %q", got)
	}
	if got := kept(filepath.Join(temp, "none")); got != "" {
		t.Errorf("where there is no such directory: %q", got)
	}
	t.Setenv(golang.CacheVariable, "/named")
	if err := keepGoCache(uid, t.TempDir()); err != nil || os.Getenv(golang.CacheVariable) != "/named" {
		t.Errorf("one that was named: %q %v", os.Getenv(golang.CacheVariable), err)
	}
}
