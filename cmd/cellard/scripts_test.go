package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/internal/testagent"
)

// TestScripts runs the scripts of testdata/scripts over the binary. Besides testscript's
// own commands there are
//
//	status N COMMAND ...   which must exit with N
//	agent                  starts an agent, at $UNIX, $TCP and $FIRECRACKER
func TestScripts(t *testing.T) {
	python := pythons.Newest(t)
	binary, err := exec.LookPath("cellard") // where testscript.Main has put it
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/scripts",
		Setup: func(e *testscript.Env) error {
			// Cells of another user can't enter the script's own directory.
			e.Setenv("CELLARD_WORKSPACE", fixture.Dir(t, 0o777))
			e.Setenv("CELLARD_RUNTIME_DIR", fixture.Dir(t, 0o711))
			e.Setenv("TMPDIR", fixture.Dir(t, 0o755))
			e.Setenv("CELLARD_PYTHON", python)
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": func(ts *testscript.TestScript, neg bool, args []string) {
				want, err := strconv.Atoi(args[0])
				if err != nil || neg {
					ts.Fatalf("usage: status N COMMAND ...")
				}
				err = ts.Exec(args[1], args[2:]...)
				if got := exitCode(err); got != want {
					ts.Fatalf("exit code %d, wanted %d: %v", got, want, err)
				}
			},
			"agent": func(ts *testscript.TestScript, _ bool, args []string) {
				a, err := testagent.Start(binary, python, args...)
				ts.Check(err)
				ts.Defer(func() { ts.Check(a.Stop()) })
				file := filepath.Join(a.Dir, "token")
				ts.Check(os.WriteFile(file, []byte(a.Token), 0o600))
				for k, v := range map[string]string{"UNIX": a.Unix, "TCP": a.TCP, "FIRECRACKER": a.Firecracker, "TOKEN": a.Token, "TOKENFILE": file,
					"LISTEN": strings.Replace(a.TCP, "http:", "tcp:", 1), "HTTPS": strings.Replace(a.TCP, "http:", "https:", 1)} {
					ts.Setenv(k, v)
				}
			},
		},
	})
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := err.(interface{ ExitCode() int }); ok {
		return e.ExitCode()
	}
	return -1
}
