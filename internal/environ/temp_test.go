package environ

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// What is written while it is removed goes too.
func TestRemoveAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	for round := range 20 {
		if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
			t.Fatal(err)
		}
		started, ended := make(chan struct{}), make(chan struct{})
		go func() { // writes where it was told to, as long as that is there
			defer close(ended)
			for n := 0; ; n++ {
				if err := os.WriteFile(filepath.Join(dir, "a", "b", strconv.Itoa(n)), nil, 0o644); err != nil {
					return
				}
				if n == 10 {
					close(started)
				}
			}
		}()
		<-started
		if err := RemoveAll(dir); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		<-ended
		if left, err := os.Lstat(dir); err == nil {
			t.Fatalf("round %d: %s is left", round, left.Name())
		}
	}
}
