package store

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openUnnamed makes a file in dir that has no name: killed at any moment, the
// agent leaves nothing, and a cell that clears the workspace can't take it.
func openUnnamed(dir *os.File) (*os.File, error) {
	return openAt(dir, ".", unix.O_TMPFILE|unix.O_RDWR, 0o600)
}

// nameUnnamed gives such a file a name. It goes by /proc, as open(2) says:
// AT_EMPTY_PATH needs a capability.
func nameUnnamed(f, dir *os.File, name string) error {
	old := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	err := ignoringEINTR(func() error {
		return unix.Linkat(unix.AT_FDCWD, old, int(dir.Fd()), name, unix.AT_SYMLINK_FOLLOW)
	})
	if err != nil {
		return &os.LinkError{Op: "link", Old: old, New: dir.Name() + "/" + name, Err: err}
	}
	return nil
}

// probeUnnamed reports whether both work in dir: not all file systems have
// O_TMPFILE (NFS, overlayfs before Linux 6.6), and not every guest has /proc.
func probeUnnamed(dir *os.File) bool {
	f, err := openUnnamed(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	name := scratchName()
	if nameUnnamed(f, dir, name) != nil {
		return false
	}
	return remove(dir, name) == nil
}
