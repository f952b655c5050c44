package golang

import (
	"context"
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

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/kernels/golang/wire"
)

// build makes a toolchain's workspace below base, unless another process has meanwhile.
// It takes a minute or two on a small machine: the standard library is compiled anew.
// run runs a command; in a process with a Reaper that is the Reaper's.
func build(ctx context.Context, t *Toolchain, base string, say func(string), run func(*exec.Cmd) error) (*workspace, error) {
	w := &workspace{dir: filepath.Join(base, key(t)), own: base}
	lock, err := environ.LockFile(ctx, w.dir+".lock", func() {})
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if w.usable(os.Geteuid()) {
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
