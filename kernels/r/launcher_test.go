package r

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/cellard/cellard/mime"
)

var update = flag.Bool("update", false, "write cellard_types.R anew")

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
	want.WriteString("# The agent's table of file types: go test ./kernels/r -run Types -update writes it.\n\nTYPES <- c(\n")
	for i, ending := range endings {
		fmt.Fprintf(&want, "  %q = %q%s\n", ending, types[ending], comma(i, endings))
	}
	want.WriteString(")\n\n# Those whose values are base64.\nBINARY <- c(\n")
	for i, typ := range binary {
		fmt.Fprintf(&want, "  %q%s\n", typ, comma(i, binary))
	}
	want.WriteString(")\n")
	if *update {
		if err := os.WriteFile("cellard_types.R", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := Files()["cellard_types.R"]; !*update && !bytes.Equal(got, want.Bytes()) {
		t.Error("cellard_types.R is not what package mime says: run this test with -update")
	}
}

func comma(i int, list []string) string {
	if i == len(list)-1 {
		return ""
	}
	return ","
}
