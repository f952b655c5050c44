package python

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/environ"
)

// fake makes a program that answers as an interpreter, and notes each run.
func fake(t *testing.T, path, ipykernel string) {
	t.Helper()
	script(t, path, `echo run >> "$0.runs"
echo 'printed by a sitecustomize'
echo '{"executable": "'"$0"'", "prefix": "/p", "python": "3.11.2", "ipykernel": "`+ipykernel+`"}'`)
}

func script(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func runs(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path + ".runs")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "run")
}

func TestFindInOrder(t *testing.T) {
	root := t.TempDir()
	venv, conda, path := filepath.Join(root, "v", "bin", "python3"), filepath.Join(root, "c", "bin", "python"), filepath.Join(root, "p", "python3")
	fake(t, path, "7.4.0")
	fake(t, conda, "6.17.0")
	fake(t, venv, "6.16.2")
	f := NewFinder(Options{Env: []string{"PATH=" + filepath.Dir(path), "VIRTUAL_ENV=" + filepath.Join(root, "v"), "CONDA_PREFIX=" + filepath.Join(root, "c")}})
	found, err := f.Find(context.Background())
	if err != nil || found.Executable != conda || found.IPykernel != "6.17.0" || found.Version != "3.11.2" {
		t.Fatalf("found %+v, %v; want conda's, as the venv's is too old", found, err)
	}
	if runs(t, venv) != 1 || runs(t, conda) != 1 || runs(t, path) != 0 {
		t.Error("not asked one after another, each once")
	}

	f = NewFinder(Options{Env: []string{"PATH=relative:" + filepath.Dir(path)}})
	if found, err = f.Find(context.Background()); err != nil || found.Executable != path {
		t.Errorf("found %+v, %v; want that on PATH", found, err)
	}
}

func TestFindRemembers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "py")
	f := NewFinder(Options{Command: path})
	find := func(ok bool, want int) {
		t.Helper()
		_, err := f.Find(context.Background())
		if (err == nil) != ok {
			t.Errorf("error %v", err)
		}
		if got := runs(t, path); got != want {
			t.Errorf("asked %d times, want %d", got, want)
		}
	}
	find(false, 0)
	fake(t, path, "")
	find(false, 1)
	find(false, 2) // a failure is not remembered
	fake(t, path, "6.29.5")
	find(true, 3)
	find(true, 3) // a success is
	f.Forget()
	find(true, 4)
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	find(true, 5) // another program is there now
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	find(false, 5)
}

// What an interpreter does when it is asked is bounded, and it leaves nothing.
func TestAskIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "py")
	script(t, path, `sleep 600 & echo $! > "$0.child"; wait`)
	f := NewFinder(Options{Command: path, Timeout: 300 * time.Millisecond})
	if _, err := f.Find(context.Background()); err == nil || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("error %v, want that it did not answer", err)
	}
	data, err := os.ReadFile(path + ".child")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	gone := func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	}
	for end := time.Now().Add(time.Minute); !gone(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the child of the interpreter lives on")
		}
	}

	script(t, path, `yes | head -c 10000000; yes | head -c 10000000 >&2; exit 1`)
	if _, err := NewFinder(Options{Command: path}).Find(context.Background()); err == nil || len(err.Error()) > 2000 {
		t.Errorf("error of %d bytes", len(err.Error()))
	}

	ctx, cancel := context.WithCancel(context.Background())
	script(t, path, "sleep 600")
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := NewFinder(Options{Command: path}).Find(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestAskedAsTheKernelsUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("only root can run as another user: this asks as itself")
	}
	dir, err := os.MkdirTemp("/tmp", "cellard-test-") // t.TempDir's parents are for us alone
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "py")
	script(t, path, `echo '{"executable": "'"$(id -u)"'", "prefix": "/", "python": "3.11.2", "ipykernel": "7.4.0"}'`)
	o := Options{Command: path, Dir: "/"}
	want := strconv.Itoa(os.Getuid())
	if os.Getuid() == 0 {
		want = "65534"
		o.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	found, err := NewFinder(o).Find(context.Background())
	if err != nil || found.Executable != want {
		t.Errorf("asked as %+v, %v; want uid %s", found, err, want)
	}
}

func TestBadCommands(t *testing.T) {
	for _, command := range []string{"'", "  ", "/no/such/python", "no-such-python -E"} {
		if _, err := NewFinder(Options{Command: command, Env: []string{"PATH=/usr/bin"}}).Find(context.Background()); err == nil {
			t.Errorf("%q: no error", command)
		}
	}
}

func TestVersions(t *testing.T) {
	for version, want := range map[string]bool{"6.17.0": true, "6.17": true, "6.100.1": true, "7.0.0a1": true, "10.0": true,
		"6.16.9": false, "6.9": false, "5.99.0": false, "": false, "7": false, "x.y": false} {
		if got := environ.AtLeast(version, minMajor, minMinor); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}
