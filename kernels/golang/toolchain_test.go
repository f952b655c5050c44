package golang_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/kernels/golang"
)

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
