package bash

import (
	"context"
	"fmt"
	"slices"

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

// Finder finds bash, and remembers it. It is safe for concurrent use.
type Finder struct {
	search environ.Search
	memo   *environ.Memo[found]
}

type found struct{ path, version string }

// NewFinder returns a Finder.
func NewFinder(s environ.Search) *Finder {
	return &Finder{search: s.WithDefaults(), memo: environ.NewMemo[found]()}
}

// Find returns the path of the bash on the PATH and its version. A success is
// remembered as long as the program stays the same file.
func (f *Finder) Find(ctx context.Context) (path, version string, err error) {
	b, err := f.memo.Get(ctx, func() (*found, string, error) {
		path, err := environ.LookPath(f.search.Env, "bash")
		if err != nil {
			return nil, "", err
		}
		clean := f.search
		clean.Env = append(slices.Clip(clean.Env), "BASH_ENV=")
		version, err := clean.Ask(ctx, path, "--norc", "--noprofile", "-c", `printf '%s' "$BASH_VERSION"`)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", path, err)
		}
		if !environ.AtLeast(version, minMajor, minMinor) {
			return nil, "", fmt.Errorf("%s is of version %.40q, and %s is the oldest that will do", path, version, minVersion)
		}
		return &found{path, version}, path, nil
	})
	if err != nil {
		return "", "", err
	}
	return b.path, b.version, nil
}

// Forget makes the next Find ask again.
func (f *Finder) Forget() { f.memo.Forget() }
