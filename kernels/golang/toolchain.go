package golang

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cellard/cellard/internal/environ"
)

// minMinor is the oldest Go that will do, as 1.minMinor: the first whose loop variables
// are each iteration's own, and that ranges over numbers.
const minMinor = 22

// hint says what to do where there is no toolchain that will do.
const hint = "install Go 1.22 or newer (golang-go where the distribution has that, or the official archive unpacked to /usr/local/go), and gcc with the C library's headers (apt-get install gcc libc6-dev)"

// Toolchain is a Go toolchain that can build plugins.
type Toolchain struct {
	// Program is the go command, Root its GOROOT.
	Program, Root string
	// Version is the full version ("go1.26.8"), Language what it speaks ("go1.26").
	Version, Language string
	// CC is the C compiler, by which plugins are linked.
	CC string
	// Built identifies the toolchain among those of its version.
	Built string
}

// NotFoundError tells why no toolchain will do.
type NotFoundError struct {
	Reason string
	// NoCompiler: there is a toolchain that will do, and no C compiler, by which cells are
	// linked.
	NoCompiler bool
}

func (e *NotFoundError) Error() string { return e.Reason }

// Hint says what to do about it.
func (e *NotFoundError) Hint() string {
	if e.NoCompiler {
		return "install gcc and the C library's headers (apt-get install gcc libc6-dev)"
	}
	return hint
}

// FinderOptions say where to look. The zero value looks in this process's environment.
type FinderOptions struct {
	environ.Search
	// Program is a go command to use; "" looks for one.
	Program string
}

// Finder finds a toolchain, and remembers it. It is safe for concurrent use.
type Finder struct {
	o    FinderOptions
	memo *environ.Memo[Toolchain]
}

// NewFinder returns a Finder.
func NewFinder(o FinderOptions) *Finder {
	o.Search = o.Search.WithDefaults()
	return &Finder{o: o, memo: environ.NewMemo[Toolchain]()}
}

// Forget makes the next Find ask again.
func (f *Finder) Forget() { f.memo.Forget() }

// Find returns the first toolchain that will do, of those on the PATH, in GOROOT, in
// /usr/local/go and in Debian's /usr/lib/go-*. The error is a *NotFoundError. A success
// is remembered as long as the program stays the same file.
func (f *Finder) Find(ctx context.Context) (*Toolchain, error) {
	t, err := f.memo.Get(ctx, func() (*Toolchain, string, error) { return f.look(ctx) })
	if err != nil {
		return nil, err
	}
	if _, gone := os.Stat(t.CC); gone != nil { // the compiler was taken away since
		f.Forget()
		return f.memo.Get(ctx, func() (*Toolchain, string, error) { return f.look(ctx) })
	}
	return t, nil
}

func (f *Finder) look(ctx context.Context) (*Toolchain, string, error) {
	cc, err := f.compiler()
	var reasons []string
	for _, program := range f.candidates() {
		t, reason := f.ask(ctx, program)
		if t == nil {
			reasons = append(reasons, reason)
			continue
		}
		if err != nil {
			return nil, "", err
		}
		t.CC = cc
		return t, program, nil
	}
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	if len(reasons) == 0 {
		return nil, "", &NotFoundError{Reason: "there is no Go toolchain on this machine"}
	}
	return nil, "", &NotFoundError{Reason: strings.Join(reasons, "; ")}
}

// compiler is the C compiler that plugins are linked by.
func (f *Finder) compiler() (string, error) {
	if cc := environ.Get(f.o.Env, "CC"); cc != "" && !strings.ContainsAny(cc, " \t") {
		if path, err := environ.LookPath(f.o.Env, cc); err == nil {
			return path, nil
		}
	}
	for _, name := range []string{"gcc", "cc", "clang"} {
		if path, err := environ.LookPath(f.o.Env, name); err == nil {
			return path, nil
		}
	}
	return "", &NotFoundError{Reason: "there is a Go toolchain, but no C compiler, by which cells are linked", NoCompiler: true}
}

// candidates are the go commands to try.
func (f *Finder) candidates() []string {
	if f.o.Program != "" {
		return []string{f.o.Program}
	}
	var all []string
	add := func(path string) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 && !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	if path, err := environ.LookPath(f.o.Env, "go"); err == nil {
		add(path)
	}
	if root := environ.Get(f.o.Env, "GOROOT"); root != "" {
		add(filepath.Join(root, "bin", "go"))
	}
	add("/usr/local/go/bin/go")
	debian, _ := filepath.Glob("/usr/lib/go-*/bin/go")
	slices.SortFunc(debian, func(a, b string) int { return minorOf(b) - minorOf(a) })
	for _, path := range debian {
		add(path)
	}
	return all
}

var debianMinor = regexp.MustCompile(`/go-1\.(\d+)`)

func minorOf(path string) int {
	if m := debianMinor.FindStringSubmatch(path); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 0
}

var versionForm = regexp.MustCompile(`^go(\d+)\.(\d+)(?:[.\-a-z0-9 :X]*)$`)

// noSidecar keeps a go command from leaving a process in the background, which tends the
// counts of its use (cmd/go's telemetry, Go 1.23 and newer) and writes to the user's
// configuration after the command has ended.
const noSidecar = "GO_TELEMETRY_CHILD=2"

// ask asks a go command what it is. The reason tells why it won't do.
func (f *Finder) ask(ctx context.Context, program string) (t *Toolchain, reason string) {
	clean := f.o.Search
	clean.Env = append(slices.Clip(clean.Env), "GOTOOLCHAIN=local", "GOFLAGS=", "GOWORK=off", "GO111MODULE=off", noSidecar)
	out, err := clean.Ask(ctx, program, "env", "GOVERSION", "GOROOT", "GOARCH")
	if err != nil {
		return nil, fmt.Sprintf("%s does not work: %v", program, err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 {
		return nil, fmt.Sprintf("%s does not work: it answers %.80q", program, out)
	}
	version, root := strings.TrimSpace(lines[0]), strings.TrimSpace(lines[1])
	m := versionForm.FindStringSubmatch(version)
	if m == nil {
		return nil, fmt.Sprintf("%s is of a version that is not known: %.80q", program, version)
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	if major == 1 && minor < minMinor {
		return nil, fmt.Sprintf("%s is %s, and Go 1.%d is the oldest that will do", program, version, minMinor)
	}
	if _, err := os.Stat(filepath.Join(root, "src", "runtime")); err != nil {
		return nil, fmt.Sprintf("%s has no standard library in %s", program, root)
	}
	return &Toolchain{Program: program, Root: root, Version: version, Language: "go" + m[1] + "." + m[2],
		Built: version + " " + root + " " + lines[2]}, ""
}

// errNoDir tells that nothing can be kept.
var errNoDir = errors.New("no directory for Go's build cache: set HOME, XDG_CACHE_HOME or CELLARD_GO_CACHE to one that can be written to")
