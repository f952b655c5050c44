package golang

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
)

// workspace is what has been built for a toolchain: the programs, and the standard
// library as plugins need it. It is read-only once it is there.
type workspace struct {
	dir string
	// own is the user's own directory, with the build cache for modules.
	own string
}

func (w *workspace) front() string     { return filepath.Join(w.dir, "front") }
func (w *workspace) worker() string    { return filepath.Join(w.dir, "worker") }
func (w *workspace) importcfg() string { return filepath.Join(w.dir, "importcfg") }
func (w *workspace) linker() string    { return filepath.Join(w.dir, "linker.json") }
func (w *workspace) cache() string     { return filepath.Join(w.own, "build") }

// key names the directory of a toolchain's workspace.
func key(t *Toolchain) string {
	sum := sha256.Sum256([]byte(t.Built + "\n" + t.CC + "\n" + sourcesSum()))
	return t.Version + "-" + hex.EncodeToString(sum[:8])
}

// openWorkspace finds what was built, by this user or for all; nil if nothing was.
func openWorkspace(t *Toolchain, env func(string) string) (*workspace, error) {
	own, err := ownCache(env)
	if err != nil {
		return nil, err
	}
	uid := os.Geteuid()
	return find(t, own, bases(own, named(env), uid), uid), nil
}

// Prepared tells whether what cells need is built, so that a kernel starts at once: for a
// user with an environment. Nothing is made, so it can't tell which of the directories
// that may be the user's own will be: it looks into each.
func Prepared(t *Toolchain, env func(string) string, uid int) bool {
	return find(t, "", append(caches(env, uid), SharedCache), uid) != nil
}

// find finds a workspace that a user can use in one of these directories; nil for none.
func find(t *Toolchain, own string, bases []string, uid int) *workspace {
	name := key(t)
	for _, base := range bases {
		w := &workspace{dir: filepath.Join(base, name), own: own}
		if w.usable(uid) {
			return w
		}
	}
	return nil
}

// usable tells whether a workspace is whole, and the user's own or root's.
func (w *workspace) usable(uid int) bool {
	info, err := os.Stat(w.dir)
	if err != nil || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	if !ownedBy(info, 0, uid) {
		return false
	}
	for _, file := range []string{w.front(), w.worker(), w.importcfg(), w.linker()} {
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return w.complete()
}

// complete tells whether each archive is there: what tends directories for temporary files
// removes single ones that nothing has read for long.
func (w *workspace) complete() bool {
	cfg, err := os.ReadFile(w.importcfg())
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(cfg)) {
		_, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		if _, err := os.Stat(file); err != nil {
			return false
		}
	}
	return true
}

// shared is the build cache that the workspace was built with, where that isn't the
// user's own; else "".
func (w *workspace) shared() string {
	if base := filepath.Dir(w.dir); base != w.own {
		return filepath.Join(base, "build")
	}
	return ""
}
