package store

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/protocol/api"
)

// helperEnv, set, makes a copy of the test binary do a helper's work.
const helperEnv = "STORE_TEST_HELPER"

// helper starts a copy that runs but the test of that name, with its standard
// output to read from.
func helper(t *testing.T, test string, args ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe, append([]string{"-test.run=^" + test + "$"}, args...)...)
	cmd.Env = append(os.Environ(), helperEnv+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	return cmd, out
}

// TestHelperWrites is the helper of TestKilled.
func TestHelperWrites(t *testing.T) {
	if os.Getenv(helperEnv) != "" {
		writeUntilKilled(os.Args[2], os.Args[3] == "named")
	}
}

func writeUntilKilled(dir string, named bool) {
	s, err := Open(dir, Options{Quota: 4 << 20})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s.tmpfile = s.tmpfile && !named
	for worker := range 3 {
		go func() {
			r := rand.New(rand.NewPCG(rand.Uint64(), 0))
			for i := 0; ; i++ {
				content := bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(300_000))
				ref, err := s.Put(fmt.Sprintf("c%d", worker), i, "image/png", bytes.NewReader(content))
				if err == nil && i%10 == 9 {
					err = s.Drop(fmt.Sprintf("c%d", worker))
				}
				if err != nil {
					fmt.Println(err)
					os.Exit(1)
				}
				if i == 3 {
					fmt.Println("ready", ref.Path)
				}
			}
		}()
	}
	select {}
}

// TestKilled kills an agent anywhere and opens what it leaves.
func TestKilled(t *testing.T) {
	for _, kind := range []string{"unnamed", "named"} {
		t.Run(kind, func(t *testing.T) {
			dir := storeDir(t)
			for range 8 {
				cmd, out := helper(t, "TestHelperWrites", dir, kind)
				must(t, cmd.Start())
				line, err := bufio.NewReader(out).ReadString('\n')
				if err != nil || !strings.HasPrefix(line, "ready") {
					t.Errorf("the helper says %q, %v", line, err)
				}
				time.Sleep(rand.N(30 * time.Millisecond))
				must(t, cmd.Process.Kill())
				_ = cmd.Wait()

				s, err := Open(dir, Options{})
				must(t, err)
				var used int64
				for _, name := range tree(t, s) {
					context, rest, _ := strings.Cut(name, "/")
					file, ok := strings.CutPrefix(rest, outDir+"/")
					if !ok || !validFile(file) {
						t.Errorf("left is %s", name)
						continue
					}
					used += int64(len(read(t, s, context, file)))
				}
				if s.Usage() != used {
					t.Errorf("%d bytes are used, files have %d", s.Usage(), used)
				}
				if ref, err := s.Put("c0", 1, "text/plain", strings.NewReader("x")); err != nil {
					t.Errorf("%+v, %v", ref, err)
				}
				must(t, s.Close())
			}
		})
	}
}

func TestInUse(t *testing.T) {
	s := openStore(t, storeDir(t), Options{})
	_, err := Open(s.path, Options{})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "--workspace") {
		t.Errorf("got %v", err)
	}
	put(t, s, "python", 1, "text/plain", []byte("x"))
	must(t, s.Close())
	again := openStore(t, s.path, Options{})
	put(t, again, "python", 1, "text/plain", []byte("y"))
}

// TestEarlierFiles: what an earlier agent left can be read, counts, and goes first.
func TestEarlierFiles(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, dir, Options{})
	var refs []api.Ref
	for i := range 4 {
		refs = append(refs, put(t, s, "python", 1, "application/vnd.plotly.v1+json", []byte(fmt.Sprintf(`{"n":%d,"pad":"%s"}`, i, strings.Repeat("x", 40)))))
		at := time.Now().Add(-time.Duration(i) * time.Hour) // the last is the oldest
		must(t, os.Chtimes(refs[i].Path, at, at))
	}
	out := filepath.Dir(refs[0].Path)
	must(t, s.Close(),
		os.WriteFile(filepath.Join(out, "a cell's own.txt"), []byte("kept"), 0o644),
		os.WriteFile(filepath.Join(dir, scratchPrefix+"00"), []byte("left"), 0o600),
		os.MkdirAll(filepath.Join(dir, scratchPrefix+"01", "python", "out"), 0o700),
		os.Symlink("/etc/passwd", filepath.Join(out, "1-"+strings.Repeat("0", 32)+".txt")),
		unix.Mkfifo(filepath.Join(out, "1-"+strings.Repeat("1", 32)+".txt"), 0o666),
		os.Symlink("/etc", filepath.Join(dir, "etc")),
		os.WriteFile(filepath.Join(out, "1-"+strings.Repeat("2", 32)+".txt"), []byte("not what its name says"), 0o444))

	s = openStore(t, dir, Options{})
	size := refs[0].Bytes
	if want := 4*size + int64(len("not what its name says")); s.Usage() != want {
		t.Errorf("%d bytes are used, want %d", s.Usage(), want)
	}
	for _, name := range tree(t, s) {
		if isScratch(name) {
			t.Errorf("left is %s", name)
		}
	}
	f, err := s.Open("python", filepath.Base(refs[2].Path))
	must(t, err)
	f.Close()
	if f.MIME != "application/json" || f.SHA256 != refs[2].SHA256 {
		t.Errorf("got %q, %s", f.MIME, f.SHA256)
	}
	_, err = s.Open("python", "1-"+strings.Repeat("2", 32)+".txt")
	wantCode(t, err, api.CodeGone)
	for _, digit := range []string{"0", "1"} {
		_, err = s.Open("python", "1-"+strings.Repeat(digit, 32)+".txt")
		wantCode(t, err, api.CodeNotFound)
	}
	must(t, s.Close())

	// A smaller quota holds from the start, and the oldest go.
	s = openStore(t, dir, Options{Quota: 2 * size})
	for i, ref := range refs {
		f, err := s.Open("python", filepath.Base(ref.Path))
		if i >= 2 {
			wantCode(t, err, api.CodeGone)
		} else if err != nil {
			t.Error(err)
		} else {
			f.Close()
		}
	}
	put(t, s, "r", 1, "text/plain", []byte("x")) // pushes out one more
	_, err = s.Open("python", filepath.Base(refs[1].Path))
	wantCode(t, err, api.CodeGone)
	if got, err := os.ReadFile(filepath.Join(out, "a cell's own.txt")); err != nil || string(got) != "kept" {
		t.Errorf("a cell's file: %q, %v", got, err)
	}
}
