package golang

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/kernels/golang/wire"
)

// SharedCache is where Warm puts what every user's kernels read, when it runs as root.
const SharedCache = "/var/cache/cellard/go"

// CacheVariable names a directory to look into before all others, but for what KeptCache
// gives, and to write to where it is the user's own.
const CacheVariable = "CELLARD_GO_CACHE"

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
	for _, base := range bases(own, env(CacheVariable), os.Geteuid()) {
		w := &workspace{dir: filepath.Join(base, key(t)), own: own}
		if w.usable() {
			return w, nil
		}
	}
	return nil, nil
}

// bases are the directories to look into. What root has prepared no cell can have changed:
// it comes before what lies in the user's own, unless that was named.
func bases(own, named string, uid int) []string {
	if named == "" || named == KeptCache(KeptIn, uid) {
		return []string{SharedCache, own}
	}
	return slices.Compact([]string{named, own, SharedCache})
}

// KeptIn is where a command that makes a home for the account of cells, and removes it,
// keeps what was built.
const KeptIn = "/var/tmp"

// KeptCache is the directory of a user's in KeptIn, or in another place for such files.
func KeptCache(in string, uid int) string {
	return filepath.Join(in, "cellard-go-"+strconv.Itoa(uid))
}

// Prepared tells whether what cells need is built, so that a kernel starts at once: for a
// user with an environment. Nothing is made.
func Prepared(t *Toolchain, env func(string) string, uid int) bool {
	for _, base := range append(caches(env, uid), SharedCache) {
		w := &workspace{dir: filepath.Join(base, key(t))}
		if w.usableBy(uid) {
			return true
		}
	}
	return false
}

// usable tells whether a workspace is whole, and nobody else's.
func (w *workspace) usable() bool { return w.usableBy(os.Geteuid()) }

func (w *workspace) usableBy(uid int) bool {
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

// caches are the directories that may be a user's own, the first that can be made is.
func caches(env func(string) string, uid int) (tried []string) {
	if dir := env(CacheVariable); filepath.IsAbs(dir) {
		tried = append(tried, dir)
	}
	if dir := env("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		tried = append(tried, filepath.Join(dir, "cellard", "go"))
	}
	if dir := env("HOME"); filepath.IsAbs(dir) && dir != "/" {
		tried = append(tried, filepath.Join(dir, ".cache", "cellard", "go"))
	}
	temp := env("TMPDIR")
	if temp == "" {
		temp = os.TempDir()
	}
	return append(tried, KeptCache(temp, uid))
}

// ownCache is the user's own directory. It is made.
func ownCache(env func(string) string) (string, error) {
	for _, dir := range caches(env, os.Geteuid()) {
		if os.MkdirAll(dir, 0o700) != nil {
			continue
		}
		// A link to it must not be another's: where all may write it could lead anywhere.
		if link, err := os.Lstat(dir); err != nil || !ownedBy(link, 0, os.Geteuid()) {
			continue
		}
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o022 != 0 || !ownedBy(info, os.Geteuid()) {
			continue
		}
		if probe, err := os.CreateTemp(dir, ".probe"); err == nil {
			probe.Close()
			os.Remove(probe.Name())
			return dir, nil
		}
	}
	return "", errNoDir
}

// ownedBy tells whether a file is one of these users'.
func ownedBy(info os.FileInfo, uids ...int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && slices.Contains(uids, int(st.Uid))
}

// build makes a toolchain's workspace below base, unless another process has meanwhile.
// It takes a minute or two on a small machine: the standard library is compiled anew.
// run runs a command; in a process with a Reaper that is the Reaper's.
func build(ctx context.Context, t *Toolchain, base string, say func(string), run func(*exec.Cmd) error) (*workspace, error) {
	w := &workspace{dir: filepath.Join(base, key(t)), own: base}
	unlock, err := lock(ctx, w.dir+".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if w.usable() {
		return w, nil
	}
	say("building Go's standard library for cells, once for this toolchain (" + t.Version + ")")
	// A build that was killed has left its directory; the lock says that none is under way.
	stale, _ := filepath.Glob(filepath.Join(base, "build-"+key(t)+"-*"))
	for _, dir := range stale {
		_ = os.RemoveAll(dir)
	}
	temp, err := os.MkdirTemp(base, "build-"+key(t)+"-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	if err := w.fill(ctx, t, temp, run); err != nil {
		return nil, err
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return nil, err
	}
	// One that isn't usable is in the way: half removed, or another's.
	_ = os.RemoveAll(w.dir)
	if err := os.Rename(temp, w.dir); err != nil {
		return nil, err
	}
	return w, nil
}

// fill builds into temp, which will be w.dir.
func (w *workspace) fill(ctx context.Context, t *Toolchain, temp string, run func(*exec.Cmd) error) error {
	source := filepath.Join(temp, "src")
	if err := writeSources(source, strings.TrimPrefix(t.Language, "go")); err != nil {
		return err
	}
	cache := w.cache()
	command := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, t.Program, args...)
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = time.Second
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		cmd.Dir = source
		cmd.Env = append(os.Environ(), "GOROOT="+t.Root, "GOFLAGS=-trimpath -mod=mod", "GOTOOLCHAIN=local", "GOWORK=off", "GO111MODULE=on",
			"GOPROXY=off", "CGO_ENABLED=1", "CC="+t.CC, "GOCACHE="+cache, "GOTMPDIR="+temp, noSidecar, wire.NoIndex(os.Getenv("GODEBUG")))
		var out, said strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &said
		err := run(cmd)
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if err != nil {
			return "", fmt.Errorf("go %s: %w: %.2000s", args[0], err, said.String())
		}
		return out.String(), nil
	}
	std, err := again(ctx, command, "list", "std")
	if err != nil {
		return err
	}
	exports := append([]string{"list", "-buildmode=plugin", "-export", "-deps",
		"-f", "{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}", "./live/..."}, importable(std)...)
	list, err := again(ctx, command, exports...)
	if err != nil && ctx.Err() == nil {
		// What is kept of earlier builds may be damaged: it is the cells' user's own. It isn't
		// removed as long as another go command may use it.
		cache = filepath.Join(temp, "build")
		list, err = again(ctx, command, exports...)
	}
	if err != nil {
		return err
	}
	if err := w.archives(list, temp); err != nil {
		return err
	}
	for _, program := range []string{"front", "worker"} {
		if _, err := again(ctx, command, "build", "-ldflags=-s -w", "-o", filepath.Join(temp, program), "./"+program); err != nil {
			return err
		}
	}
	if cache != w.cache() {
		damaged := filepath.Join(temp, "damaged")
		_ = os.Rename(w.cache(), damaged)
		if err := errors.Join(os.Rename(cache, w.cache()), os.RemoveAll(damaged)); err != nil {
			return err
		}
	}
	linker, err := wire.FindLinker(t.CC, run)
	if err != nil {
		return err
	}
	b, err := json.Marshal(linker)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(temp, "linker.json"), b, 0o644)
}

// importable are those of the standard library's packages, one a line, that a cell can
// import: of the others only what these need is worth its time and its room.
func importable(std string) []string {
	return slices.DeleteFunc(strings.Fields(std), func(path string) bool {
		return slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return part == "internal" || part == "vendor" })
	})
}

// again runs a command once more as long as a signal ends it or a child of its: an
// interrupt of the cell that waits for the build is for all that this kernel has
// started. What was built by then is kept.
func again(ctx context.Context, command func(...string) (string, error), args ...string) (out string, err error) {
	for range 100 {
		out, err = command(args...)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "signal: ") {
			break
		}
	}
	return out, err
}

// archives keeps the archives: the build cache forgets what it has not built for days.
func (w *workspace) archives(list, temp string) error {
	std := filepath.Join(temp, "std")
	if err := os.Mkdir(std, 0o755); err != nil {
		return err
	}
	var cfg strings.Builder
	for i, line := range strings.Split(strings.TrimSpace(list), "\n") {
		path, file, ok := strings.Cut(line, "=")
		if !ok {
			return fmt.Errorf("go list answers %.80q", line)
		}
		name := strconv.Itoa(i) + ".a"
		if err := copyFile(file, filepath.Join(std, name)); err != nil {
			return err
		}
		fmt.Fprintf(&cfg, "packagefile %s=%s\n", path, filepath.Join(w.dir, "std", name))
	}
	return os.WriteFile(filepath.Join(temp, "importcfg"), []byte(cfg.String()), 0o644)
}

// copyFile links a file where it can, so that it takes no room.
func copyFile(from, to string) error {
	if os.Link(from, to) == nil {
		return os.Chmod(to, 0o644)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// lock holds a file's lock until unlock.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		}
	}
}

// shared is the build cache that the workspace was built with, where that isn't the
// user's own; else "".
func (w *workspace) shared() string {
	if base := filepath.Dir(w.dir); base != w.own {
		return filepath.Join(base, "build")
	}
	return ""
}
