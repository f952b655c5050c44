package environ

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLockFile has that one who waits is told once, and ends by its context or by the lock.
func TestLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	none := func() { t.Error("it waits for a lock that nobody holds") }
	first, err := LockFile(t.Context(), path, none)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough, told := errors.New("enough"), 0
	if _, err := LockFile(ctx, path, func() {
		told++
		time.AfterFunc(300*time.Millisecond, func() { cancel(enough) })
	}); !errors.Is(err, enough) || told != 1 {
		t.Errorf("told %d times: %v", told, err)
	}
	second, err := LockFile(t.Context(), path, func() { first.Close() })
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
	if err := os.Symlink(path, path+".link"); err != nil {
		t.Fatal(err)
	}
	if f, err := LockFile(t.Context(), path+".link", none); err == nil {
		f.Close()
		t.Error("it follows a link")
	}
}
