package supervisor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cellard/cellard/internal/environ"
)

// A runtime directory is had, and what another agent has left goes; but not while another
// process holds the lock of all, for as long as it likes.
func TestClaim(t *testing.T) {
	base := t.TempDir()
	claim := func() string {
		t.Helper()
		dir, err := Claim(base, "agent-*", func() (string, error) { return os.MkdirTemp(base, "agent-") })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if lock, ok := held.LoadAndDelete(dir); ok {
				_ = lock.(*os.File).Close()
			}
		})
		return dir
	}
	names := func() []string {
		all, _ := filepath.Glob(filepath.Join(base, "*"))
		return all
	}
	if err := os.Mkdir(filepath.Join(base, "agent-left"), 0o700); err != nil {
		t.Fatal(err)
	}
	lock := environ.LockDir(base)
	if lock == nil {
		t.Fatal("it can't be locked")
	}
	first := claim()
	if got := names(); len(got) != 2 {
		t.Errorf("beside a lock: %q", got)
	}
	_ = lock.Close()
	second := claim()
	if got := names(); len(got) != 2 || first == second {
		t.Errorf("then: %q, of which %s and %s live", got, first, second)
	}
}
