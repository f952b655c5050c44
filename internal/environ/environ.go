// Package environ answers questions about an environment given as a list of
// NAME=value, as a process gets it, rather than about the agent's own. It keeps
// nothing.
package environ

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Lookup is the value of a variable; where it is set twice, the last one counts,
// as in exec.Cmd.
func Lookup(env []string, name string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// Get is Lookup without telling an empty value from none.
func Get(env []string, name string) string {
	value, _ := Lookup(env, name)
	return value
}

// LookPath finds a program as a process with that environment would: a name by
// its PATH, a path as it is. Relative directories in PATH are passed over: what a
// current directory holds is a cell's, not a program of ours.
func LookPath(env []string, name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, check(name)
	}
	for _, dir := range filepath.SplitList(Get(env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if path := filepath.Join(dir, name); check(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not on PATH", name)
}

// check tells whether a path is a file that somebody may execute. Whether the
// kernels' user may is known only once it is run.
func check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not a program", path)
	}
	return nil
}
