package golang_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/kernels/golang"
)

// What lacks is told alone: who has a toolchain, and no C compiler, needs no other.
func TestFindNoCompiler(t *testing.T) {
	program := toolchain(t).Program
	find := func(o golang.FinderOptions) *golang.NotFoundError {
		o.Search = environ.Search{Env: []string{"HOME=" + t.TempDir(), "PATH=" + t.TempDir()}}
		_, err := golang.NewFinder(o).Find(t.Context())
		var missing *golang.NotFoundError
		if !errors.As(err, &missing) {
			t.Fatalf("without a C compiler: %v", err)
		}
		return missing
	}
	if e := find(golang.FinderOptions{Program: program}); !e.NoCompiler || !strings.Contains(e.Hint(), "apt-get install gcc libc6-dev") || strings.Contains(e.Hint(), "golang-go") {
		t.Errorf("no C compiler: %v: %s", e, e.Hint())
	}
	if e := find(golang.FinderOptions{Program: "/nonexistent/go"}); e.NoCompiler || !strings.Contains(e.Hint(), "golang-go") {
		t.Errorf("nothing: %v: %s", e, e.Hint())
	}
}

// To ask a go command what it is must leave nothing that runs on: from 1.23 on the first
// one of a user in a day starts a process of its own, which makes a token first.
func TestFindLeavesNothing(t *testing.T) {
	home := t.TempDir()
	tool, err := golang.NewFinder(golang.FinderOptions{Search: environ.Search{Env: append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=")}}).Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tool.Root == "" {
		t.Errorf("%+v", tool)
	}
	token := filepath.Join(home, ".config", "go", "telemetry", "local", "upload.token")
	if _, err := os.Stat(token); err == nil {
		t.Error("a process was left in the background: it made its token")
	}
}
