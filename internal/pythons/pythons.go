// Package pythons finds the Python interpreters that tests run real kernels on:
// those of CELLARD_TEST_PYTHONS, which make test sets, or else the environments
// that scripts/setup-python.sh makes. Only tests use it.
package pythons

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Python is an interpreter with an ipykernel.
type Python struct {
	// Name is "oldest" or "newest", for the name of a subtest.
	Name string
	Path string
}

// All returns both ends of the range of ipykernels that are tested, the oldest
// first.
func All(t testing.TB) []Python {
	t.Helper()
	names := []string{"oldest", "newest"}
	paths := filepath.SplitList(os.Getenv("CELLARD_TEST_PYTHONS"))
	if len(paths) == 0 {
		for _, n := range names {
			paths = append(paths, setup(t, n))
		}
	}
	if len(paths) != len(names) {
		t.Fatalf("CELLARD_TEST_PYTHONS: want two interpreters, oldest:newest, not %q", paths)
	}
	return []Python{{names[0], paths[0]}, {names[1], paths[1]}}
}

// Newest returns the interpreter with the newest ipykernel that is tested.
func Newest(t testing.TB) string {
	t.Helper()
	if p := os.Getenv("CELLARD_TEST_PYTHON"); p != "" {
		return p
	}
	return setup(t, "newest")
}

func setup(t testing.TB, name string) string {
	t.Helper()
	c := exec.Command(filepath.Join(root(t), "scripts", "setup-python.sh"), name)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("setup-python.sh %s: %v\n%s", name, err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// root is the directory of the module: a test starts in its package's.
func root(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatalf("go list -m: %v", err)
	}
	return strings.TrimSpace(string(out))
}
