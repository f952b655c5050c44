package environ

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cellard/cellard/internal/fixture"
)

// What is wrong with the directory is not told of the program.
func TestEnter(t *testing.T) {
	dir := fixture.Dir(t, 0o755)
	file, closed, inner := filepath.Join(dir, "file"), filepath.Join(dir, "closed"), filepath.Join(dir, "closed", "inner")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(closed, 0o700) })
	var nobody *syscall.Credential
	if os.Getuid() == 0 {
		nobody = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for path, want := range map[string]string{dir: "", file: "no directory", closed: "enter", inner: "enter"} {
		err := Enter(path, nobody)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: %v", path, err)
		}
	}
	s := Search{Dir: closed, Credential: nobody}
	if _, err := s.Ask(context.Background(), "/bin/sh", "-c", "echo hello"); err == nil || !strings.Contains(err.Error(), closed) {
		t.Errorf("asked there: %v", err)
	}
	s.Dir = dir
	if out, err := s.Ask(context.Background(), "/bin/sh", "-c", "echo hello"); err != nil || out != "hello\n" {
		t.Errorf("asked: %q, %v", out, err)
	}
}
