package python

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/mime"
)

var update = flag.Bool("update", false, "write cellard_types.py anew")

// TestTypesAreTheAgents holds the launcher's table of file types against the
// agent's own: a file that a cell shows is text or base64 by both.
func TestTypesAreTheAgents(t *testing.T) {
	types := mime.Types()
	var endings, binary []string
	for ending, typ := range types {
		endings = append(endings, ending)
		if mime.IsBinary(typ) && !slices.Contains(binary, typ) {
			binary = append(binary, typ)
		}
	}
	slices.Sort(endings)
	slices.Sort(binary)
	var want bytes.Buffer
	want.WriteString("\"\"\"The agent's table of file types: go test ./kernels/python -run Types -update writes it.\"\"\"\n\nTYPES = {\n")
	for _, ending := range endings {
		fmt.Fprintf(&want, "    %q: %q,\n", ending, types[ending])
	}
	want.WriteString("}\n\n# Those whose values are base64.\nBINARY = {\n")
	for _, typ := range binary {
		fmt.Fprintf(&want, "    %q,\n", typ)
	}
	want.WriteString("}\n")
	if *update {
		if err := os.WriteFile("cellard_types.py", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := Files()["cellard_types.py"]; !*update && !bytes.Equal(got, want.Bytes()) {
		t.Error("cellard_types.py is not what package mime says: run this test with -update")
	}
}

// TestLauncher runs the launcher's own tests (tests/test_*.py), which start it in
// real interpreters with the oldest and the newest ipykernel, and drive it as a
// Jupyter client does.
func TestLauncher(t *testing.T) {
	for _, python := range pythons.All(t) {
		t.Run(python.Name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), python.Path, "-B", "-m", "unittest", "discover", "-s", "tests")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", python.Path, err, out)
			}
		})
	}
}
