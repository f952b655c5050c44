package golang

import (
	"os"
	"path/filepath"
	"time"

	"github.com/cellard/cellard/internal/environ"
)

// sessionName begins the names of sessions' directories.
const sessionName = "cellard-go-kernel-"

// settled is how old a session's directory is before others take one that isn't locked for
// one whose kernel was killed: it is locked right after it was made.
const settled = time.Minute

// sessionDir makes the directory of a session's files, and locks it. Those that kernels
// of this user's have left are removed: one that an agent has started has a place that
// the agent removes, but other clients kill kernels as well.
func sessionDir(temp string) (dir string, held *os.File, err error) {
	if temp == "" {
		temp = os.TempDir()
	}
	all, _ := filepath.Glob(filepath.Join(temp, sessionName+"*"))
	for _, left := range all {
		f := environ.LockDir(left)
		if f == nil {
			continue
		}
		if info, err := f.Stat(); err == nil && time.Since(info.ModTime()) > settled {
			_ = os.RemoveAll(left)
		}
		f.Close()
	}
	if dir, err = os.MkdirTemp(temp, sessionName); err != nil {
		return "", nil, err
	}
	return dir, environ.LockDir(dir), nil
}
