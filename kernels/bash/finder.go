package bash

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cellard/cellard/internal/environ"
)

// Version is the kernel's own version.
const Version = "1"

// Implementation is the kernel's name.
const Implementation = "cellard-bash"

// Hint says what to do where there is no bash that will do.
const Hint = "install bash " + minVersion + " or newer (apt-get install bash)"

// minVersion is the oldest bash that has what the kernel's loop needs.
const (
	minVersion = "5.1"
	minMajor   = 5
	minMinor   = 1
)

// FinderOptions say where to look. The zero value looks in this process's environment.
type FinderOptions struct {
	// Env is the environment of kernels; nil stands for this process's own.
	Env []string
	// Dir is where bash is asked.
	Dir string
	// Timeout bounds its answer; 0 stands for 30 s.
	Timeout time.Duration
	// Credential is whom it runs as; nil stands for this process's own.
	Credential *syscall.Credential
}

// Finder finds bash, and remembers it. It is safe for concurrent use.
type Finder struct {
	o FinderOptions

	mu      sync.Mutex
	path    string
	version string
	stat    os.FileInfo
}

// NewFinder returns a Finder.
func NewFinder(o FinderOptions) *Finder {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	return &Finder{o: o}
}

// Find returns the path of the bash on the PATH and its version. A success is
// remembered as long as the program stays the same file.
func (f *Finder) Find(ctx context.Context) (path, version string, err error) {
	path, err = environ.LookPath(f.o.Env, "bash")
	if err != nil {
		return "", "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := os.Stat(path)
	if err == nil && path == f.path && os.SameFile(now, f.stat) && now.ModTime().Equal(f.stat.ModTime()) {
		return f.path, f.version, nil
	}
	out, err := environ.Ask(ctx, environ.Asking{
		Argv: []string{path, "--norc", "--noprofile", "-c", `printf '%s' "$BASH_VERSION"`},
		Env:  append(f.o.Env[:len(f.o.Env):len(f.o.Env)], "BASH_ENV="), Dir: f.o.Dir, Timeout: f.o.Timeout, Credential: f.o.Credential,
	})
	if err != nil {
		return "", "", err
	}
	if !atLeast(out) {
		return "", "", fmt.Errorf("%s is of version %.40q, and %s is the oldest that will do", path, out, minVersion)
	}
	f.path, f.version, f.stat = path, out, now
	return path, out, nil
}

// Forget makes the next Find ask again.
func (f *Finder) Forget() {
	f.mu.Lock()
	f.path = ""
	f.mu.Unlock()
}

// atLeast reads a version such as 5.2.15(1)-release.
func atLeast(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (major > minMajor || major == minMajor && minor >= minMinor)
}
