package golang

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// Warm builds what the first cell would else wait for: as root into SharedCache, for
// every user of the machine, else into the user's own cache. It is for when an image is
// made. say is told what is done.
func Warm(ctx context.Context, t *Toolchain, say func(string)) error {
	base := SharedCache
	if named(os.Getenv) != "" || os.Geteuid() != 0 {
		var err error
		if base, err = ownCache(os.Getenv); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		return err
	}
	w, err := build(ctx, t, base, say, (*exec.Cmd).Run)
	if err != nil {
		return err
	}
	say("Go's standard library is built for cells, in " + w.dir)
	if base != SharedCache {
		return nil
	}
	// What go list and go build left must be readable for those that seed from it.
	return filepath.WalkDir(w.cache(), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if d.IsDir() {
			mode = 0o755
		}
		return os.Chmod(path, mode)
	})
}
