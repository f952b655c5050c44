// Package pythons finds the Python interpreters that tests run real kernels on:
// those of CELLARD_TEST_PYTHONS, which make test sets, or else the environments
// that scripts/setup-python.sh makes. Only tests use it.
package pythons

import (
	"fmt"
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
	p, err := FindNewest()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Named returns the interpreter of an environment that scripts/setup-python.sh makes.
func Named(t testing.TB, name string) string {
	t.Helper()
	return setup(t, name)
}

// FindNewest is Newest where there is no test yet, as in TestMain.
func FindNewest() (string, error) {
	if p := os.Getenv("CELLARD_TEST_PYTHON"); p != "" {
		return p, nil
	}
	return find("newest")
}

func setup(t testing.TB, name string) string {
	t.Helper()
	p, err := find(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func find(name string) (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output() // a test starts in its package's directory
	if err != nil {
		return "", fmt.Errorf("go list -m: %w", err)
	}
	c := exec.Command(filepath.Join(strings.TrimSpace(string(root)), "scripts", "setup-python.sh"), name)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("setup-python.sh %s: %w\n%s", name, err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
