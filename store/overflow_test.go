package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cellard/cellard/protocol/api"
)

func overflow(t *testing.T, s *Store) *Overflow {
	t.Helper()
	o, err := s.NewOverflow("python", 2, "stdout")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Discard)
	return o
}

func finish(t *testing.T, o *Overflow) api.Overflow {
	t.Helper()
	over, err := o.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return over
}

func TestOverflow(t *testing.T) {
	forEachKind(t, func(t *testing.T, open func(string, Options) *Store) {
		s := open(storeDir(t), Options{})
		o := overflow(t, s)
		var want strings.Builder
		for i := range 3000 {
			text := strings.Repeat("line é\n", i%40)
			want.WriteString(text)
			if i%2 == 0 {
				o.WriteString(text)
			} else {
				o.Write([]byte(text))
			}
		}
		long := strings.Repeat("0", 300_000)
		want.WriteString(long)
		o.WriteString(long)
		over := finish(t, o)
		if over.Stream != "stdout" || over.Bytes != int64(want.Len()) || over.Dropped != 0 {
			t.Errorf("got %+v, want %d bytes", over, want.Len())
		}
		name := filepath.Base(over.Path)
		if !strings.HasPrefix(name, "2-"+sum([]byte(want.String()))[:32]) || !strings.HasSuffix(name, ".txt") {
			t.Errorf("the name is %s", name)
		}
		if got := read(t, s, "python", name); string(got) != want.String() {
			t.Error("other content")
		}
		if st, err := os.Lstat(over.Path); err != nil || st.Mode() != 0o444 {
			t.Errorf("%v, %v", st, err)
		}
		if _, err := o.Finish(); err == nil {
			t.Error("finished twice")
		}
		o.WriteString("late") // counted, and no more
		if names := tree(t, s); len(names) != 1 || s.Usage() != over.Bytes {
			t.Errorf("there are %v, %d bytes", names, s.Usage())
		}
	})
}

func TestOverflowLimit(t *testing.T) {
	s := openStore(t, storeDir(t), Options{SpoolLimit: 100_000})
	o := overflow(t, s)
	o.WriteString("ab")
	for range 20_000 {
		o.WriteString("日本") // the limit falls within a character
	}
	over := finish(t, o)
	if over.Bytes != 120_002 || over.Dropped != 120_002-99_998 {
		t.Errorf("got %+v", over)
	}
	got := read(t, s, "python", filepath.Base(over.Path))
	if !utf8.Valid(got) || int64(len(got)) != over.Bytes-over.Dropped || string(got) != ("ab" + strings.Repeat("日本", 20_000))[:len(got)] {
		t.Errorf("%d bytes, want the first %d", len(got), over.Bytes-over.Dropped)
	}
}

func TestOverflowReset(t *testing.T) {
	forEachKind(t, func(t *testing.T, open func(string, Options) *Store) {
		s := open(storeDir(t), Options{SpoolLimit: 100_000})
		o := overflow(t, s)
		o.WriteString(strings.Repeat("x", 200_000))
		o.Reset()
		if s.Usage() != 0 {
			t.Errorf("%d bytes are used", s.Usage())
		}
		o.WriteString("after")
		over := finish(t, o)
		if over.Bytes != 5 || over.Dropped != 0 || string(read(t, s, "python", filepath.Base(over.Path))) != "after" {
			t.Errorf("got %+v", over)
		}
	})
}

func TestOverflowDiscard(t *testing.T) {
	forEachKind(t, func(t *testing.T, open func(string, Options) *Store) {
		s := open(storeDir(t), Options{})
		o := overflow(t, s)
		o.WriteString(strings.Repeat("x", 200_000))
		o.Discard()
		o.WriteString("late")
		if names := tree(t, s); len(names) != 0 || s.Usage() != 0 {
			t.Errorf("left are %v, %d bytes", names, s.Usage())
		}
	})
}

func TestOverflowOverQuota(t *testing.T) {
	s := openStore(t, storeDir(t), Options{Quota: 100_000})
	put(t, s, "python", 1, "text/plain", []byte(strings.Repeat("o", 10_000)))
	o := overflow(t, s)
	o.WriteString(strings.Repeat("x", 200_000))
	o.WriteString("after")
	over, err := o.Finish()
	if !errors.Is(err, ErrFull) {
		t.Errorf("got %v", err)
	}
	got := read(t, s, "python", filepath.Base(over.Path))
	if over.Bytes != 200_005 || int64(len(got)) != over.Bytes-over.Dropped || len(got) < 50_000 || strings.Trim(string(got), "x") != "" {
		t.Errorf("%d bytes are kept of %+v", len(got), over)
	}
}
