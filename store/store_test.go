package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"github.com/cellard/cellard/protocol/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// forEachKind runs a test on files without names and on named ones.
func forEachKind(t *testing.T, test func(t *testing.T, open func(dir string, o Options) *Store)) {
	for _, named := range []bool{false, true} {
		t.Run(fmt.Sprintf("named=%v", named), func(t *testing.T) {
			test(t, func(dir string, o Options) *Store {
				s := openStore(t, dir, o)
				if named {
					s.tmpfile = false
				}
				return s
			})
		})
	}
}

func openStore(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func storeDir(t *testing.T) string { return filepath.Join(t.TempDir(), ".runtime", "interpreter") }

func put(t *testing.T, s *Store, context string, generation int, mimeType string, content []byte) api.Ref {
	t.Helper()
	ref, err := s.Put(context, generation, mimeType, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func read(t *testing.T, s *Store, context, name string) []byte {
	t.Helper()
	f, err := s.Open(context, name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(b)) != f.Size || f.SHA256 != sum(b) {
		t.Errorf("%s: size %d and hash %s, want %d and %s", name, f.Size, f.SHA256, len(b), sum(b))
	}
	return b
}

func wantCode(t *testing.T, err error, code api.Code) {
	t.Helper()
	if !errors.Is(err, &api.Error{Code: code}) {
		t.Errorf("got %v, want %s", err, code)
	}
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// tree is all that lies in the store's directory, its lock apart.
func tree(t *testing.T, s *Store) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(s.path, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != lockName {
			names = append(names, strings.TrimPrefix(path, s.path+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestPut(t *testing.T) {
	forEachKind(t, func(t *testing.T, open func(string, Options) *Store) {
		dir := storeDir(t)
		s := open(dir, Options{})
		content := bytes.Repeat([]byte("\x89PNG"), 50_000)
		ref := put(t, s, "python", 3, "image/png", content)

		want := filepath.Join(dir, "python", "out", "3-"+sum(content)[:32]+".png")
		if ref.Path != want || ref.Bytes != int64(len(content)) || ref.SHA256 != sum(content) {
			t.Errorf("got %+v, want the path %s, %d bytes, the hash %s", ref, want, len(content), sum(content))
		}
		st, err := os.Lstat(ref.Path)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode() != 0o444 {
			t.Errorf("the mode is %v", st.Mode())
		}
		for _, d := range []string{dir, filepath.Dir(dir), filepath.Join(dir, "python"), filepath.Join(dir, "python", "out")} {
			if st, err := os.Lstat(d); err != nil || st.Mode() != 0o755|os.ModeDir {
				t.Errorf("%s: %v, %v", d, st.Mode(), err)
			}
		}
		if got := read(t, s, "python", filepath.Base(ref.Path)); !bytes.Equal(got, content) {
			t.Error("other content")
		}
		f, err := s.Open("python", filepath.Base(ref.Path))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if f.MIME != "image/png" {
			t.Errorf("the type is %q", f.MIME)
		}
		if s.Usage() != int64(len(content)) {
			t.Errorf("%d bytes are used", s.Usage())
		}
		if names := tree(t, s); len(names) != 1 {
			t.Errorf("there are %v", names)
		}
	})
}

func TestPutAgain(t *testing.T) {
	forEachKind(t, func(t *testing.T, open func(string, Options) *Store) {
		s := open(storeDir(t), Options{})
		var wg sync.WaitGroup
		for range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range 10 {
					ref, err := s.Put("python", 1, "text/html", strings.NewReader("<p>the same</p>"))
					if err != nil {
						t.Error(err)
						return
					}
					f, err := s.Open("python", filepath.Base(ref.Path))
					if err != nil {
						t.Error(err)
						return
					}
					f.Close()
				}
			}()
		}
		wg.Wait()
		if names := tree(t, s); len(names) != 1 || s.Usage() != 15 {
			t.Errorf("there are %v, %d bytes", names, s.Usage())
		}
	})
}

func TestPutFails(t *testing.T) {
	forEachKind(t, func(t *testing.T, open func(string, Options) *Store) {
		s := open(storeDir(t), Options{})
		broken := errors.New("broken")
		r := io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), iotest.ErrReader(broken))
		if _, err := s.Put("python", 1, "text/plain", r); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if _, err := s.Put("../x", 1, "text/plain", strings.NewReader("x")); err == nil {
			t.Error("a context outside was taken")
		}
		if names := tree(t, s); len(names) != 0 || s.Usage() != 0 {
			t.Errorf("left are %v, %d bytes", names, s.Usage())
		}
	})
}

func TestNotFound(t *testing.T) {
	s := openStore(t, storeDir(t), Options{})
	ref := put(t, s, "python", 1, "text/plain", []byte("x"))
	name := filepath.Base(ref.Path)
	for _, k := range []key{{"python", "1-" + strings.Repeat("0", 32) + ".txt"}, {"r", name}, {"python", "../out/" + name}, {"python", ""},
		{"..", name}, {"", name}, {"python", ".lock"}, {"python", name + "/"}, {"python", "\x00"}} {
		_, err := s.Open(k.context, k.file)
		wantCode(t, err, api.CodeNotFound)
	}
}

func TestDrop(t *testing.T) {
	s := openStore(t, storeDir(t), Options{Quota: 100})
	old := put(t, s, "python", 1, "text/plain", bytes.Repeat([]byte("a"), 60))
	put(t, s, "r", 1, "text/plain", []byte("r"))
	ref := put(t, s, "python", 1, "text/plain", bytes.Repeat([]byte("b"), 60))
	_, err := s.Open("python", filepath.Base(old.Path))
	wantCode(t, err, api.CodeGone)
	// What a cell made there goes too.
	deep := filepath.Join(filepath.Dir(ref.Path), "made", "by", "a", "cell")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(deep, "link")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds nothing
		if err := s.Drop("python"); err != nil {
			t.Fatal(err)
		}
	}
	if names := tree(t, s); len(names) != 1 || s.Usage() != 1 {
		t.Errorf("left are %v, %d bytes", names, s.Usage())
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	for _, r := range []api.Ref{old, ref} {
		_, err := s.Open("python", filepath.Base(r.Path))
		wantCode(t, err, api.CodeNotFound)
	}
}

func TestQuota(t *testing.T) {
	forEachKind(t, func(t *testing.T, open func(string, Options) *Store) {
		s := open(storeDir(t), Options{Quota: 100})
		var names []string
		for i := range 5 {
			names = append(names, filepath.Base(put(t, s, "python", 1, "text/plain", bytes.Repeat([]byte{byte('a' + i)}, 30)).Path))
		}
		for i, name := range names {
			f, err := s.Open("python", name)
			if i < 2 {
				wantCode(t, err, api.CodeGone)
			} else if err != nil {
				t.Error(err)
			} else {
				f.Close()
			}
		}
		// One that is put again is the newest, and no longer gone.
		put(t, s, "python", 1, "text/plain", bytes.Repeat([]byte("a"), 30))
		read(t, s, "python", names[0])
		// One that can't fit fails; what it pushed out is gone, and nothing of it stays.
		_, err := s.Put("python", 1, "text/plain", strings.NewReader(strings.Repeat("x", 101)))
		if !errors.Is(err, ErrFull) {
			t.Errorf("got %v", err)
		}
		if n := s.Usage(); n > 100 || int64(30*len(tree(t, s))) != n {
			t.Errorf("%d bytes are used, there are %v", n, tree(t, s))
		}
	})
}

func TestWhatIsWrittenIsNotPushedOut(t *testing.T) {
	forEachKind(t, func(t *testing.T, open func(string, Options) *Store) {
		s := open(storeDir(t), Options{Quota: 100_000})
		o, err := s.NewOverflow("python", 1, "stdout")
		if err != nil {
			t.Fatal(err)
		}
		defer o.Discard()
		o.WriteString(strings.Repeat("x", 90_000)) // more than its buffer
		_, err = s.Put("python", 1, "text/plain", strings.NewReader(strings.Repeat("y", 50_000)))
		if !errors.Is(err, ErrFull) {
			t.Errorf("got %v", err)
		}
		put(t, s, "python", 1, "text/plain", []byte("z"))
		over, err := o.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, s, "python", filepath.Base(over.Path)); string(got) != strings.Repeat("x", 90_000) {
			t.Error("other content")
		}
	})
}

func TestTemp(t *testing.T) {
	forEachKind(t, func(t *testing.T, open func(string, Options) *Store) {
		s := open(storeDir(t), Options{})
		f, err := s.Temp()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if names := tree(t, s); len(names) != 0 {
			t.Errorf("there are %v", names)
		}
		if _, err := f.WriteString("spooled"); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 7)
		if _, err := f.ReadAt(b, 0); err != nil || string(b) != "spooled" {
			t.Errorf("%q, %v", b, err)
		}
	})
}

func TestClose(t *testing.T) {
	s := openStore(t, storeDir(t), Options{})
	ref := put(t, s, "python", 1, "text/plain", []byte("x"))
	o, err := s.NewOverflow("python", 1, "stdout")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	o.WriteString("late")
	if over, err := o.Finish(); !errors.Is(err, ErrClosed) || over.Dropped != 4 || over.Bytes != 4 || over.Path != "" {
		t.Errorf("%+v, %v", over, err)
	}
	if _, err := s.Put("python", 1, "text/plain", strings.NewReader("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Temp(); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	_, err = s.Open("python", filepath.Base(ref.Path))
	wantCode(t, err, api.CodeUnavailable)
}
