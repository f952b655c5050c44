package compiler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/kernels/golang/wire"
)

const targetArch = runtime.GOARCH

// maxToolOutput bounds what is kept of what a tool says.
const maxToolOutput = 64 << 10

// tools runs the toolchain's compiler and linker.
type tools struct {
	goroot   string
	language string   // go1.26
	dir      string   // of the session's own files
	linker   []string // arguments of the linker
	env      []string
}

func (t *tools) tool(name string) string {
	return filepath.Join(t.goroot, "pkg", "tool", runtime.GOOS+"_"+runtime.GOARCH, name)
}

// compile compiles a package of one file, and gives its archive's path.
func (t *tools) compile(ctx context.Context, path, file, importcfg string) (string, error) {
	archive := strings.TrimSuffix(file, ".go") + ".a"
	err := t.run(ctx, t.tool("compile"), "-o", archive, "-p", path, "-lang", t.language, "-complete",
		"-dynlink", "-pack", "-trimpath", t.dir+"=>", "-importcfg", importcfg, file)
	return archive, err
}

// link makes a plugin of a compiled main package.
func (t *tools) link(ctx context.Context, path, archive, importcfg, out string) error {
	args := []string{"-o", out, "-importcfg", importcfg, "-buildmode=plugin", "-pluginpath", path, "-w", "-s"}
	args = append(args, t.linker...)
	return t.run(ctx, t.tool("link"), append(args, archive)...)
}

// run runs a tool to its end.
func (t *tools) run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = t.dir
	// Little garbage is worth collecting in a fraction of a second.
	cmd.Env = append(os.Environ(), "GOGC=400", "TMPDIR="+t.dir)
	cmd.Env = append(cmd.Env, t.env...)
	out := &limited{max: maxToolOutput}
	cmd.Stdout, cmd.Stderr = out, out
	err := runGroup(cmd)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return &toolError{name: filepath.Base(name), dir: t.dir, err: err, output: out.String()}
	}
	return nil
}

// runGroup runs a command, and leaves none of its children behind when it is stopped or
// fails: a linker's linker would go on writing.
func runGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if err != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return err
}

// toolError is a tool's failure.
type toolError struct {
	name   string
	dir    string // where it writes
	err    error
	output string
}

func (e *toolError) Error() string {
	text := strings.TrimSpace(wire.Unmark(e.output))
	var exit *exec.ExitError
	switch {
	case strings.Contains(strings.ToLower(text), "no space left on device"):
		return fmt.Sprintf("the Go toolchain's %s has no room left for its files in %s: remove what isn't needed there, or start the kernel with TMPDIR set to a directory with more", e.name, filepath.Dir(e.dir))
	case errors.As(e.err, &exit) && !exit.Exited():
		return fmt.Sprintf("the Go toolchain's %s has ended by a signal (%v), perhaps for want of memory: run the cell again", e.name, e.err)
	case text == "":
		return fmt.Sprintf("the Go toolchain's %s: %v", e.name, e.err)
	}
	return text
}

func (e *toolError) Unwrap() error { return e.err }

// limited keeps the first bytes that it is given.
// The buffer is not embedded: its ReadFrom, which io.Copy prefers, knows no limit.
type limited struct {
	b   bytes.Buffer
	max int
}

func (l *limited) Write(b []byte) (int, error) {
	if room := l.max - l.b.Len(); room > 0 {
		l.b.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

func (l *limited) Bytes() []byte  { return l.b.Bytes() }
func (l *limited) String() string { return l.b.String() }

// archives knows where each package's archive is.
type archives map[string]string

// readImportcfg reads lines "packagefile PATH=FILE".
func (a archives) readImportcfg(text string) {
	for _, line := range strings.Split(text, "\n") {
		if rest, ok := strings.CutPrefix(line, "packagefile "); ok {
			if path, file, ok := strings.Cut(rest, "="); ok {
				a[path] = strings.TrimSpace(file)
			}
		}
	}
}

func (a archives) importcfg() string {
	var b strings.Builder
	for _, path := range sortedKeys(a) {
		fmt.Fprintf(&b, "packagefile %s=%s\n", path, a[path])
	}
	return b.String()
}

var errNoArchive = errors.New("no archive")
