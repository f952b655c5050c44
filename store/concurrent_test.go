package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/cellard/cellard/protocol/api"
)

// TestConcurrent does all at once within a quota; after it, the index, the
// directory and the count agree.
func TestConcurrent(t *testing.T) {
	forEachKind(t, func(t *testing.T, open func(string, Options) *Store) {
		const quota = 1 << 20
		s := open(storeDir(t), Options{Quota: quota})
		broken := errors.New("broken")
		var wg sync.WaitGroup
		for worker := range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				r := rand.New(rand.NewPCG(uint64(worker), 9))
				context := fmt.Sprintf("c%d", worker%3)
				for range 60 {
					content := bytes.Repeat([]byte{byte('a' + r.IntN(4))}, 1+r.IntN(60_000))
					switch r.IntN(10) {
					case 0:
						if err := s.Drop(context); err != nil {
							t.Error(err)
						}
					case 1:
						bad := io.MultiReader(bytes.NewReader(content), iotest.ErrReader(broken))
						if _, err := s.Put(context, 1, "text/plain", bad); !errors.Is(err, broken) && !errors.Is(err, ErrFull) {
							t.Error(err)
						}
					case 2, 3:
						o, err := s.NewOverflow(context, 1, "stderr")
						if err != nil {
							t.Error(err)
							continue
						}
						o.Write(content)
						o.Reset()
						o.Write(content)
						if over, err := o.Finish(); err != nil || over.Bytes != int64(len(content)) {
							t.Errorf("%+v, %v", over, err)
						}
					default:
						ref, err := s.Put(context, 1, "text/plain", bytes.NewReader(content))
						if err != nil {
							t.Error(err)
							continue
						}
						f, err := s.Open(context, filepath.Base(ref.Path))
						if errors.Is(err, &api.Error{Code: api.CodeGone}) || errors.Is(err, &api.Error{Code: api.CodeNotFound}) {
							continue // another worker's doing
						}
						if err != nil {
							t.Error(err)
							continue
						}
						got, err := io.ReadAll(f)
						f.Close()
						if err != nil || !bytes.Equal(got, content) {
							t.Errorf("%d bytes, %v, want %d", len(got), err, len(content))
						}
					}
				}
			}()
		}
		wg.Wait()
		var onDisk int64
		for _, name := range tree(t, s) {
			st, err := os.Lstat(filepath.Join(s.path, name))
			must(t, err)
			onDisk += st.Size()
			if strings.HasPrefix(name, scratchPrefix) {
				t.Errorf("left is %s", name)
			}
		}
		var indexed int64
		for _, f := range s.index.files {
			indexed += f.size
		}
		if onDisk != s.Usage() || indexed != s.Usage() || s.Usage() > quota {
			t.Errorf("%d bytes on disk, %d in the index, %d are used", onDisk, indexed, s.Usage())
		}
		if len(s.index.files) != s.index.order.Len() || len(s.index.gone) != s.index.goneOrder.Len() {
			t.Error("the index doesn't agree with itself")
		}
	})
}

func TestIndexIsBounded(t *testing.T) {
	var x index
	x.init()
	for i := range maxGone + 100 {
		x.setGone(key{"c", fmt.Sprint(i)})
	}
	if len(x.gone) != maxGone || x.goneOrder.Len() != maxGone || x.gone[key{"c", "99"}] || !x.gone[key{"c", "100"}] {
		t.Errorf("%d names are known", len(x.gone))
	}
	x.add(&file{key: key{"c", "200"}, size: 5})
	if x.gone[key{"c", "200"}] || x.goneOrder.Len() != maxGone-1 || x.used != 5 {
		t.Error("what is there again is not gone")
	}
	x.dropContext("c")
	if len(x.gone) != 0 || x.goneOrder.Len() != 0 || x.used != 0 || len(x.files) != 0 || x.order.Len() != 0 {
		t.Error("something is left")
	}
}

// FuzzOpen asks for any names: only the store's own are ever opened.
func FuzzOpen(f *testing.F) {
	s, err := Open(filepath.Join(f.TempDir(), ".runtime", "interpreter"), Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	ref, err := s.Put("python", 1, "text/plain", strings.NewReader("x"))
	if err != nil {
		f.Fatal(err)
	}
	name := filepath.Base(ref.Path)
	for _, k := range [][2]string{{"python", name}, {"..", name}, {"python", "../out/" + name}, {".", lockName}, {"python/out", ""}, {"python", name + "\x00"}} {
		f.Add(k[0], k[1])
	}
	f.Fuzz(func(t *testing.T, context, file string) {
		got, err := s.Open(context, file)
		if err == nil {
			got.Close()
			if context != "python" || file != name {
				t.Errorf("opened %q, %q", context, file)
			}
		} else if !errors.Is(err, &api.Error{Code: api.CodeNotFound}) {
			t.Errorf("%q, %q: %v", context, file, err)
		}
		if validFile(file) && (strings.ContainsAny(file, "/\\\x00") || len(hashOf(file)) != shownHash || strings.HasPrefix(file, ".")) {
			t.Errorf("%q is valid", file)
		}
		if validContext(context) && strings.ContainsAny(context, "./\x00") {
			t.Errorf("%q is valid", context)
		}
	})
}

func BenchmarkPut(b *testing.B) {
	for _, size := range []int{100 << 10, 10 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s, err := Open(filepath.Join(b.TempDir(), ".runtime", "interpreter"), Options{Quota: 200 << 20})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			content := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				content[0], content[1], content[2] = byte(i), byte(i>>8), byte(i>>16)
				if _, err := s.Put("python", 1, "image/png", bytes.NewReader(content)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOverflow(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), ".runtime", "interpreter"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	o, err := s.NewOverflow("python", 1, "stdout")
	if err != nil {
		b.Fatal(err)
	}
	defer o.Discard()
	text := strings.Repeat("a line of plain text, 40 characters long\n", 1600)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		o.WriteString(text)
		if o.total > 500<<20 {
			o.Reset()
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), ".runtime", "interpreter"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ref, err := s.Put("python", 1, "image/png", bytes.NewReader(make([]byte, 10<<20)))
	if err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(ref.Path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	// As it is once the times of the file are old enough.
	s.index.files[key{"python", filepath.Base(ref.Path)}].seen, err = identify(f)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		f, err := s.Open("python", filepath.Base(ref.Path))
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}
