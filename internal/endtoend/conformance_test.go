package endtoend

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/gocache"
	"github.com/cellard/cellard/internal/pythons"
)

// conforming are the kernels of our own that the public test suite is run on; what each
// has is told in testdata/conformance.py.
var conforming = []string{"bash", "javascript", "typescript", "java", "go", "r"}

// TestConformance runs jupyter_kernel_test and nbclient on the kernels of our own, as any
// Jupyter client starts them: by the kernelspecs that cellard kernel install writes.
func TestConformance(t *testing.T) {
	python := pythons.Named(t, "conformance")
	if err := gocache.Setup(); err != nil {
		t.Fatal(err)
	}
	binary, err := binaries.release()
	if err != nil {
		t.Fatal(err)
	}
	prefix := fixture.Dir(t, 0o755)
	for _, name := range conforming {
		t.Run(name, func(t *testing.T) {
			if out, err := exec.Command(binary, "kernel", "install", name, "--prefix", prefix).CombinedOutput(); err != nil {
				t.Fatalf("kernel install: %v\n%s", err, out)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			script, err := filepath.Abs(filepath.Join("testdata", "conformance.py"))
			if err != nil {
				t.Fatal(err)
			}
			c := exec.CommandContext(ctx, python, script, name)
			c.Dir = fixture.Dir(t, 0o755)
			c.Env = append(os.Environ(), "JUPYTER_PATH="+filepath.Join(prefix, "share", "jupyter"),
				"JUPYTER_RUNTIME_DIR="+fixture.Dir(t, 0o700), "JUPYTER_PLATFORM_DIRS=1")
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
