package endtoend

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cellard/cellard/internal/fixture"
)

// R's temporary directory goes with the kernel, however that ends; what R starts has the
// one that the agent has.
func TestTemporaryFilesGoWithR(t *testing.T) {
	place := fixture.Dir(t, 0o777)
	a := start(t, config{env: []string{"TMPDIR=" + place}})
	session := func() string {
		t.Helper()
		dir := a.cell("r", `writeLines("x", tempfile()); cat(tempdir(), Sys.getenv("TMPDIR"), Sys.getenv("CELLARD_TMPDIR", "none"), length(dir(tempdir())) > 0)`)
		dir, rest, _ := strings.Cut(dir, " ")
		if filepath.Dir(filepath.Dir(dir)) != place || rest != place+" none TRUE" {
			t.Fatalf("R's directory is %s, for its children %s", dir, rest)
		}
		return dir
	}
	gone := func(after, dir string) {
		t.Helper()
		a.eventually("R's temporary files go after "+after, func() error {
			if left, _ := filepath.Glob(filepath.Join(place, "cellard-r-*")); len(left) > 0 {
				return fmt.Errorf("%q", left)
			}
			_, err := os.Stat(dir)
			if err == nil {
				return fmt.Errorf("%s is there", dir)
			}
			return nil
		})
	}
	dir := session()
	a.run(object{"language": "r", "code": "tools::pskill(Sys.getpid(), 9); Sys.sleep(60)"})
	gone("it was killed", dir)
	dir = session()
	a.remove("r")
	gone("its context", dir)
	dir = session()
	_ = a.c.Process.Kill()
	gone("the agent was killed", dir)
}
