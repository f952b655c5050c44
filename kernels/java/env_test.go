package java

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

// A cell's env and cwd are what Java, children and relative paths see, and only then.
func TestSurroundings(t *testing.T) {
	before, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	onEach(t, func(t *testing.T, s *session) {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "here.txt"), []byte("found"), 0o600); err != nil {
			t.Fatal(err)
		}
		env := func(c *kernel.Cell, _ *kerneltest.Recorder) {
			c.Env = map[string]string{"CELL_A": "it's \"q\"\n$x é", "HOME": "/nowhere"}
		}
		cwd := func(c *kernel.Cell, _ *kerneltest.Recorder) { c.Cwd = dir }
		is := func(code, want string, set ...func(*kernel.Cell, *kerneltest.Recorder)) {
			t.Helper()
			if got := s.ok(t, code, set...).text(); got != want {
				t.Errorf("%s: %s, want %s", code, got, want)
			}
		}
		s.ok(t, `String child(String... command) throws Exception { return new String(new ProcessBuilder(command).start().getInputStream().readAllBytes()).strip(); }`)
		const want = `"it's \"q\"\n$x é"`
		is(`System.getenv("CELL_A")`, want, env)
		is(`System.getenv().get("CELL_A")`, want, env)
		is(`child("sh", "-c", "echo \"$CELL_A\"")`, want, env)
		is(`new String(Runtime.getRuntime().exec(new String[]{"sh", "-c", "echo \"$CELL_A\""}).getInputStream().readAllBytes()).strip()`, want, env)
		is(`child("sh", "-c", "echo $HOME")`, `"/nowhere"`, env)
		is(`System.getenv("CELL_A")`, "null")
		is(`child("sh", "-c", "echo \"${CELL_A-unset}\"")`, `"unset"`)
		is(`child("sh", "-c", "echo $HOME").equals(System.getenv("HOME"))`, "true")

		quoted := func(s string) string { return `"` + s + `"` }
		is(`Files.readString(Path.of("here.txt"))`, `"found"`, cwd)
		is(`new BufferedReader(new FileReader("here.txt")).readLine()`, `"found"`, cwd)
		is(`new File("here.txt").exists()`, "true", cwd)
		is(`child("pwd")`, quoted(dir), cwd)
		is(`Path.of("x").toAbsolutePath().toString()`, quoted(dir+"/x"), cwd)
		is(`new File("x").getAbsolutePath()`, quoted(dir+"/x"), cwd)
		is(`System.getProperty("user.dir")`, quoted(dir), cwd)
		is(`child("pwd") + new File("").getAbsolutePath() + Path.of("").toAbsolutePath() + System.getProperty("user.dir")`, quoted(strings.Repeat(before, 4)))
		is(`new File("here.txt").exists()`, "false")

		// It ends with the cell also where that fails, or is stopped.
		s.fails(t, `throw new RuntimeException();`, "java.lang.RuntimeException", "", env, cwd)
		is(`child("pwd") + System.getenv("CELL_A")`, quoted(before+"null"))
		missing := func(c *kernel.Cell, _ *kerneltest.Recorder) { c.Cwd = dir + "/none" }
		s.fails(t, "1", "InvalidDirectory", "none", missing)
		bad := func(c *kernel.Cell, _ *kerneltest.Recorder) { c.Env = map[string]string{"A=B": "x"} }
		var e *kernel.Error
		if r := s.cell(t, "1", 0, bad); !errors.As(r.err, &e) {
			t.Errorf("a name with = in it: %v", r.err)
		}
		is(`child("pwd")`, quoted(before))
	})
	if now, err := os.Getwd(); err != nil || now != before {
		t.Errorf("this process is now in %s (%v)", now, err)
	}
}
