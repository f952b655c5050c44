package store

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/protocol/api"
)

// must fails the test for an error of what a cell does.
func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestInTheWay puts things where the store is about to put its own.
func TestInTheWay(t *testing.T) {
	content := []byte("the content")
	name := "1-" + sum(content)[:32] + ".txt"
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, name), []byte("somebody's"), 0o600))
	for what, plant := range map[string]func(root string) error{
		"a link for the context": func(root string) error { return os.Symlink(outside, filepath.Join(root, "python")) },
		"a dangling link for the context": func(root string) error {
			return os.Symlink(filepath.Join(outside, "new"), filepath.Join(root, "python"))
		},
		"a FIFO for the context": func(root string) error { return unix.Mkfifo(filepath.Join(root, "python"), 0o666) },
		"a link for out":         func(root string) error { return plantIn(root, func(d string) error { return os.Symlink(outside, d) }) },
		"a file for out": func(root string) error {
			return plantIn(root, func(d string) error { return os.WriteFile(d, nil, 0o666) })
		},
		"a link for the file": func(root string) error {
			return plantAt(root, name, func(f string) error { return os.Symlink(filepath.Join(outside, name), f) })
		},
		"a FIFO for the file": func(root string) error {
			return plantAt(root, name, func(f string) error { return unix.Mkfifo(f, 0o666) })
		},
		"a hard link for the file": func(root string) error {
			return plantAt(root, name, func(f string) error { return os.Link(filepath.Join(outside, name), f) })
		},
		"a directory for the file": func(root string) error {
			return plantAt(root, name, func(f string) error { return os.MkdirAll(filepath.Join(f, "full"), 0o777) })
		},
		"other content for the file": func(root string) error {
			return plantAt(root, name, func(f string) error { return os.WriteFile(f, []byte("THE CONTENT"), 0o666) })
		},
	} {
		t.Run(what, func(t *testing.T) {
			forEachKind(t, func(t *testing.T, open func(string, Options) *Store) {
				s := open(storeDir(t), Options{})
				must(t, plant(s.path))
				ref := put(t, s, "python", 1, "text/plain", content)
				if filepath.Base(ref.Path) != name {
					t.Fatalf("the path is %s", ref.Path)
				}
				if got := read(t, s, "python", name); !bytes.Equal(got, content) {
					t.Errorf("got %q", got)
				}
				if got, err := os.ReadFile(ref.Path); err != nil || !bytes.Equal(got, content) {
					t.Errorf("a cell reads %q, %v", got, err)
				}
			})
		})
	}
	left, err := os.ReadDir(outside)
	must(t, err)
	got, err := os.ReadFile(filepath.Join(outside, name))
	if len(left) != 1 || err != nil || string(got) != "somebody's" {
		t.Errorf("outside are %v, %q, %v", left, got, err)
	}
}

func plantIn(root string, plant func(out string) error) error {
	if err := os.Mkdir(filepath.Join(root, "python"), 0o777); err != nil {
		return err
	}
	return plant(filepath.Join(root, "python", outDir))
}

func plantAt(root, name string, plant func(file string) error) error {
	out := filepath.Join(root, "python", outDir)
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	return plant(filepath.Join(out, name))
}

// TestChanged does to a file what cells of the agent's own user can do.
func TestChanged(t *testing.T) {
	content := []byte("the content")
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, content, 0o600)) // even the same content
	for what, change := range map[string]func(f string) error{
		"rewritten": func(f string) error {
			st, err := os.Stat(f)
			if err != nil {
				return err
			}
			if err := os.Chmod(f, 0o666); err != nil {
				return err
			}
			if err := os.WriteFile(f, []byte("THE CONTENT"), 0o666); err != nil {
				return err
			}
			if err := os.Chmod(f, 0o444); err != nil {
				return err
			}
			return os.Chtimes(f, st.ModTime(), st.ModTime())
		},
		"cut":               func(f string) error { return chmodThen(f, func() error { return os.Truncate(f, 4) }) },
		"made huge":         func(f string) error { return chmodThen(f, func() error { return os.Truncate(f, 1<<40) }) },
		"a link":            func(f string) error { return replace(f, func() error { return os.Symlink(secret, f) }) },
		"a FIFO":            func(f string) error { return replace(f, func() error { return unix.Mkfifo(f, 0o666) }) },
		"a socket":          func(f string) error { return replace(f, func() error { return unix.Mknod(f, unix.S_IFSOCK|0o666, 0) }) },
		"a directory":       func(f string) error { return replace(f, func() error { return os.Mkdir(f, 0o777) }) },
		"removed":           os.Remove,
		"out removed":       func(f string) error { return os.RemoveAll(filepath.Dir(f)) },
		"out is a link":     func(f string) error { return moveAndLink(filepath.Dir(f)) },
		"context removed":   func(f string) error { return os.RemoveAll(up(f, 2)) },
		"context is a link": func(f string) error { return moveAndLink(up(f, 2)) },
		"store removed":     func(f string) error { return os.RemoveAll(up(f, 3)) },
		"all removed":       func(f string) error { return os.RemoveAll(up(f, 4)) },
	} {
		t.Run(what, func(t *testing.T) {
			s := openStore(t, storeDir(t), Options{})
			ref := put(t, s, "python", 1, "text/plain", content)
			other := put(t, s, "python", 1, "text/plain", []byte("the other"))
			name := filepath.Base(ref.Path)
			read(t, s, "python", name)
			must(t, change(ref.Path))
			for range 2 {
				_, err := s.Open("python", name)
				wantCode(t, err, api.CodeGone)
			}
			if s.Usage() != int64(len("the other")) {
				t.Errorf("%d bytes are used", s.Usage())
			}
			// Put again, it is there again.
			put(t, s, "python", 1, "text/plain", content)
			if got := read(t, s, "python", name); !bytes.Equal(got, content) {
				t.Errorf("got %q", got)
			}
			if f, err := s.Open("python", filepath.Base(other.Path)); err == nil {
				f.Close()
			} else {
				wantCode(t, err, api.CodeGone)
			}
			must(t, s.Drop("python"))
			if got, err := os.ReadFile(secret); err != nil || !bytes.Equal(got, content) {
				t.Errorf("the secret is %q, %v", got, err)
			}
		})
	}
}

func up(f string, n int) string {
	for range n {
		f = filepath.Dir(f)
	}
	return f
}

func replace(f string, by func() error) error {
	if err := os.Remove(f); err != nil {
		return err
	}
	return by()
}

func chmodThen(f string, then func() error) error {
	if err := os.Chmod(f, 0o666); err != nil {
		return err
	}
	return then()
}

func moveAndLink(d string) error {
	if err := os.Rename(d, d+"-moved"); err != nil {
		return err
	}
	return os.Symlink(d+"-moved", d)
}

// TestRootIsTaken: what is no directory where the store's own have to be, a link above
// all, is moved aside as it is and never followed, at the start as when a cell puts
// it there later.
func TestRootIsTaken(t *testing.T) {
	outside := t.TempDir()
	for kind, plant := range map[string]func(string) error{
		"a link":            func(f string) error { return os.Symlink(outside, f) },
		"a link to nowhere": func(f string) error { return os.Symlink(filepath.Join(outside, "new"), f) },
		"a link to itself":  func(f string) error { return os.Symlink(f, f) },
		"a file":            func(f string) error { return os.WriteFile(f, []byte("dear"), 0o600) },
		"a FIFO":            func(f string) error { return unix.Mkfifo(f, 0o666) },
	} {
		for i, which := range []string{".runtime", ".runtime/interpreter"} {
			moved := func(path string) {
				t.Helper()
				names, err := filepath.Glob(path + ".aside-*")
				if err != nil || len(names) != 1 {
					t.Fatalf("%s at %s: aside are %q, %v", kind, which, names, err)
				}
				if fi, err := os.Lstat(names[0]); err != nil || fi.IsDir() {
					t.Errorf("%s at %s: aside is %v, %v", kind, which, fi, err)
				}
			}
			base := t.TempDir()
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(base, which)), 0o755), plant(filepath.Join(base, which)))
			put(t, openStore(t, filepath.Join(base, ".runtime", "interpreter"), Options{}), "python", 1, "text/plain", []byte("x"))
			moved(filepath.Join(base, which))

			s := openStore(t, storeDir(t), Options{})
			later := filepath.Join(up(s.path, 2), which)
			must(t, os.RemoveAll(up(s.path, 1)), os.MkdirAll(up(s.path, i), 0o755), os.RemoveAll(later), plant(later))
			put(t, s, "python", 1, "text/plain", []byte("x"))
			moved(later)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("outside are %v, %v", left, err)
	}
}

// TestRemovedWhileWritten clears the workspace in the middle of a Put: a file
// without a name comes through, a named one is an error that leaves nothing.
func TestRemovedWhileWritten(t *testing.T) {
	forEachKind(t, func(t *testing.T, open func(string, Options) *Store) {
		s := open(storeDir(t), Options{})
		put(t, s, "python", 1, "text/plain", []byte("before"))
		r := io.MultiReader(strings.NewReader("the first part, "), readerFunc(func([]byte) (int, error) {
			return 0, removeThen(up(s.path, 1), io.EOF)
		}), strings.NewReader("the second"))
		ref, err := s.Put("python", 1, "text/plain", r)
		if s.tmpfile {
			must(t, err)
			if got := read(t, s, "python", filepath.Base(ref.Path)); string(got) != "the first part, the second" {
				t.Errorf("got %q", got)
			}
			return
		}
		if err == nil || s.Usage() != int64(len("before")) {
			t.Errorf("got %v, %d bytes", err, s.Usage())
		}
		ref = put(t, s, "python", 1, "text/plain", []byte("after"))
		read(t, s, "python", filepath.Base(ref.Path))
		if names := tree(t, s); len(names) != 1 {
			t.Errorf("there are %v", names)
		}
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func removeThen(path string, err error) error {
	if e := os.RemoveAll(path); e != nil {
		return e
	}
	return err
}

// TestLockFile: what lies where the lock belongs is not opened, or is replaced.
func TestLockFile(t *testing.T) {
	for what, plant := range map[string]func(f string) error{
		"a FIFO":      func(f string) error { return unix.Mkfifo(f, 0o666) },
		"a link":      func(f string) error { return os.Symlink("/etc/passwd", f) },
		"a directory": func(f string) error { return os.Mkdir(f, 0o777) },
	} {
		dir := storeDir(t)
		must(t, os.MkdirAll(dir, 0o755), plant(filepath.Join(dir, lockName)))
		s, err := Open(dir, Options{})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		s.Close()
		if st, err := os.Lstat(filepath.Join(dir, lockName)); err != nil || st.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", what, st, err)
		}
	}
}

// TestCheckedOnce holds when a file's content is read again.
func TestCheckedOnce(t *testing.T) {
	s := openStore(t, storeDir(t), Options{})
	ref := put(t, s, "python", 1, "text/plain", []byte("the content"))
	f, err := os.Open(ref.Path)
	must(t, err)
	defer f.Close()
	id, err := identify(f)
	must(t, err)
	known := *s.index.files[key{"python", filepath.Base(ref.Path)}]

	// Just written: its times can't tell a change yet.
	must(t, s.check(f, &known))
	if known.seen != (identity{}) {
		t.Error("times that are too recent were believed")
	}
	changed := time.Unix(0, max(id.ctime, id.mtime))
	if id.before(changed) || id.before(changed.Add(2*time.Second)) || !id.before(changed.Add(4*time.Second)) {
		t.Error("a change within two seconds has to show")
	}
	// Known by its times: the content is not read, so that another hash does no harm.
	known.seen, known.sha256 = id, strings.Repeat("0", 64)
	must(t, s.check(f, &known))
	// Times have changed: it is read.
	must(t, os.Chmod(ref.Path, 0o400))
	if err := s.check(f, &known); err == nil {
		t.Error("changed times were not minded")
	}
}
