package supervisor

import (
	"os"
	"path/filepath"
	"strings"

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
		_ = os.RemoveAll(k.temp)
		_ = os.Remove(k.dir + tempLink)
	}
}

// removeTemps removes all that links in a runtime directory name, and that directory.
func removeTemps(dir string) {
	links, _ := filepath.Glob(filepath.Join(dir, "*"+tempLink))
	for _, link := range links {
		if temp, err := os.Readlink(link); err == nil {
			_ = os.RemoveAll(temp)
		}
	}
	_ = os.RemoveAll(dir)
}
