package golang_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cellard/cellard/kernels/golang"
)

// TestDamagedIndex has that a session's modules can be had though the build cache holds
// an index of the standard library that nobody can read: by it, go says that no package
// is in std.
func TestDamagedIndex(t *testing.T) {
	built := os.Getenv(golang.CacheVariable)
	own := t.TempDir()
	workspaces, _ := filepath.Glob(filepath.Join(built, "go1*", "importcfg"))
	for _, w := range workspaces {
		dir := filepath.Dir(w)
		if err := os.Symlink(dir, filepath.Join(own, filepath.Base(dir))); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(golang.CacheVariable, own)
	proxyWith(t, "example.com/letters", map[string]string{
		"letters.go": "package letters\nimport \"unicode/utf8\"\nfunc Count(s string) int { return utf8.RuneCountInString(s) }\n"})

	cache := filepath.Join(own, "build")
	fill := exec.Command(toolchain(t).Program, "list", "-deps", "unicode/utf8")
	fill.Dir = own // this tree's module may want another toolchain
	fill.Env = append(os.Environ(), "GOCACHE="+cache, "GOTOOLCHAIN=local", "GOFLAGS=", "GO_TELEMETRY_CHILD=2")
	if out, err := fill.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	damaged := 0
	files, _ := filepath.Glob(filepath.Join(cache, "*", "*-d"))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(b, []byte("go index")) {
			damaged++
			if err := os.WriteFile(file, make([]byte, len(b)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if damaged == 0 {
		t.Fatal("this go command keeps its index of the standard library elsewhere")
	}
	s := start(t)
	r := s.run("%get example.com/letters@v1.0.0\nimport \"example.com/letters\"\nletters.Count(\"né\")")
	if r.err != nil || r.text() != "2" {
		t.Errorf("%q %v", r.text(), r.err)
	}
}

// ownBuild makes a directory what was built for cells is in, of files that can be removed
// or written to, and the cache of the kernels that this test starts.
func ownBuild(t *testing.T) (own string) {
	t.Helper()
	built, own := os.Getenv(golang.CacheVariable), t.TempDir()
	workspaces, _ := filepath.Glob(filepath.Join(built, "go1*", "importcfg"))
	for _, cfg := range workspaces {
		from, to := filepath.Dir(cfg), filepath.Join(own, filepath.Base(filepath.Dir(cfg)))
		if err := os.MkdirAll(filepath.Join(to, "std"), 0o700); err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob(filepath.Join(from, "std", "*"))
		for _, name := range []string{"front", "worker", "linker.json"} {
			files = append(files, filepath.Join(from, name))
		}
		for _, file := range files {
			rest, _ := filepath.Rel(from, file)
			if err := os.Symlink(file, filepath.Join(to, rest)); err != nil {
				t.Fatal(err)
			}
		}
		b, err := os.ReadFile(cfg)
		if err != nil {
			t.Fatal(err)
		}
		// It may name its directory by another path than this test.
		b = regexp.MustCompile(`=.*/std/`).ReplaceAllLiteral(b, []byte("="+filepath.Join(to, "std")+"/"))
		if err := os.WriteFile(filepath.Join(to, "importcfg"), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(golang.CacheVariable, own)
	return own
}

// TestBuildGone has that a cell says what to do where what was built for cells, or some of
// it, was removed under its kernel, whichever step that ends.
func TestBuildGone(t *testing.T) {
	for name, removed := range map[string]string{"all": "*", "the linker": "go1*/front", "the archives": "go1*/std/*"} {
		t.Run(name, func(t *testing.T) {
			own := ownBuild(t)
			s := start(t)
			s.is("x := 1", "", "")
			files, _ := filepath.Glob(filepath.Join(own, removed))
			if len(files) == 0 {
				t.Fatalf("nothing is %s", removed)
			}
			for _, file := range files {
				if err := os.RemoveAll(file); err != nil {
					t.Fatal(err)
				}
			}
			s.is("x + 1", "", "2")
			const gone = "is gone"
			s.fails("y := 2", "CompileError", gone)
			s.fails("import \"text/template\"\nt := template.New(\"\")", "CompileError", gone)
			s.fails("undefined", "CompileError", "undefined: undefined")
			s.is("x", "", "1")
		})
	}
}

// TestBuildLacks has that what lacks a file, which another than cellard has removed, isn't
// taken for whole: the kernel's start would find it whole, and no cell could be compiled.
func TestBuildLacks(t *testing.T) {
	own := ownBuild(t)
	prepared := func() bool { return golang.PreparedIn(own, toolchain(t), os.Geteuid()) }
	if !prepared() {
		t.Fatal("what was built isn't taken for whole")
	}
	archives, _ := filepath.Glob(filepath.Join(own, "go1*", "std", "7.a"))
	for _, file := range archives {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if len(archives) == 0 || prepared() {
		t.Errorf("taken for whole without %v", archives)
	}
}

// TestKilledBuild has that the next build removes what one that was killed has left.
func TestKilledBuild(t *testing.T) {
	own := t.TempDir()
	t.Setenv(golang.CacheVariable, own)
	tool, err := golang.NewFinder(golang.FinderOptions{}).Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what is built doesn't matter here
	build := func() {
		if err := golang.Warm(ctx, tool, func(string) {}); !errors.Is(err, context.Canceled) {
			t.Fatalf("a build that was canceled: %v", err)
		}
	}
	build()
	locks, _ := filepath.Glob(filepath.Join(own, "*.lock"))
	if len(locks) != 1 {
		t.Fatalf("locks: %v", locks)
	}
	key := strings.TrimSuffix(filepath.Base(locks[0]), ".lock")
	left, others := filepath.Join(own, "build-"+key+"-1"), filepath.Join(own, "build-go1.22-2")
	for _, dir := range []string{left, others} {
		if err := os.MkdirAll(filepath.Join(dir, "src"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	build()
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", left, err)
	}
	if _, err := os.Stat(others); err != nil {
		t.Errorf("another toolchain's build: %v", err)
	}
}
