package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cellard/cellard/internal/environ"
)

// makeTemp gives a kernel a directory of its own for temporary files, which goes with it:
// one that is killed can't remove them itself. It lies where such files belong, for they
// may be larger than the runtime directory's file system holds. A link in that, where
// only the agent writes, tells the keeper of it. The kernel finds it as TMPDIR, and what
// that was, for what it starts, as CELLARD_TMPDIR. Where none can be made, as on a full
// disk, the kernel does without.
func (k *kernel) makeTemp(m *Manager, vars []string) []string {
	dir, err := os.MkdirTemp("", "cellard-"+k.launch.Language+"-")
	if err != nil {
		return vars
	}
	if k.temp, err = dir, os.Symlink(dir, k.dir+tempLink); err == nil {
		err = m.user.own(dir)
	}
	if err != nil {
		k.removeTemp()
		return vars
	}
	env := []string{"TMPDIR=" + dir, "CELLARD_TMPDIR=" + environ.Get(vars, "TMPDIR")}
	for _, v := range vars {
		if !strings.HasPrefix(v, "TMPDIR=") {
			env = append(env, v)
		}
	}
	return env
}

// tempLink is what the name of a link to a kernel's temporary directory ends with.
const tempLink = ".tmp"

// removeTemp removes it, after the kernel's processes.
func (k *kernel) removeTemp() {
	if k.temp != "" {
		_ = environ.RemoveAll(k.temp)
		_ = os.Remove(k.dir + tempLink)
	}
}

// held are the runtime directories of this process's agents, locked as long as it lives.
var held sync.Map

// claimWithin is how long Claim waits for another agent that does the same.
const claimWithin = 2 * time.Second

// Claim makes a runtime directory that makeDir makes this process's, and removes
// those beside it that agents have left which were killed along with their keepers, with
// their kernels' temporary files. All are named by pattern, as in filepath.Glob.
func Claim(base, pattern string, makeDir func() (string, error)) (dir string, err error) {
	all, err := os.Open(base)
	if err != nil {
		return "", err
	}
	defer all.Close()
	// One is not yet locked while it is made, so no two agents do this at once. A process of
	// this user's may hold the lock for as long as it likes, and there are file systems
	// without locks: then nothing is removed.
	alone := false
	for end := time.Now().Add(claimWithin); !alone; time.Sleep(time.Millisecond) {
		err := syscall.Flock(int(all.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if alone = err == nil; !alone && (err != syscall.EWOULDBLOCK && err != syscall.EINTR || time.Now().After(end)) {
			break
		}
	}
	if dir, err = makeDir(); err != nil {
		return "", err
	}
	lock := environ.LockDir(dir)
	if lock == nil {
		return dir, nil
	}
	held.Store(dir, lock)
	if !alone {
		return dir, nil
	}
	others, _ := filepath.Glob(filepath.Join(base, pattern))
	for _, other := range others {
		if other == dir {
			continue
		}
		if lock := environ.LockDir(other); lock != nil {
			removeTemps(other)
			lock.Close()
		}
	}
	return dir, nil
}

// removeTemps removes all that links in a runtime directory name, and that directory.
func removeTemps(dir string) {
	links, _ := filepath.Glob(filepath.Join(dir, "*"+tempLink))
	for _, link := range links {
		if temp, err := os.Readlink(link); err == nil {
			_ = environ.RemoveAll(temp)
		}
	}
	_ = environ.RemoveAll(dir)
}
