package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cellard/cellard/client"
	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/protocol/api"
)

func notebookEnv(t *testing.T, python string) []string {
	return []string{"CELLARD_PYTHON=" + python, "CELLARD_WORKSPACE=" + fixture.Dir(t, 0o777),
		"CELLARD_RUNTIME_DIR=" + fixture.Dir(t, 0o711), "TMPDIR=" + fixture.Dir(t, 0o755)}
}

// Notebooks of several kinds have the outputs that nbclient gives them, are valid, and
// are else as they were; and so has what the agent makes of each session afterwards.
func TestNotebooksAsNbclient(t *testing.T) {
	python := pythons.Named(t, "notebook")
	in, out, sessions := t.TempDir(), t.TempDir(), t.TempDir()
	script := func(args ...string) {
		t.Helper()
		c := exec.Command(python, append([]string{"testdata/notebook.py"}, args...)...)
		if b, err := c.CombinedOutput(); err != nil {
			t.Fatalf("notebook.py %q: %v\n%s", args, err, b)
		}
	}
	script("make", in)
	names, err := filepath.Glob(filepath.Join(in, "*.ipynb"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%v %v", names, err)
	}
	env := notebookEnv(t, python)
	address := "unix://" + filepath.Join(fixture.Dir(t, 0o755), "s")
	agent := startServe(t, env, "--listen", address)
	agent.logged("msg=serving")
	c, err := client.New(address, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, n := range names {
		id := fmt.Sprintf("n%d", i)
		if _, err := c.CreateContext(t.Context(), api.ContextRequest{ID: id}); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := output(t, env, "run", "--agent", address, "--context", id, n, "-o", filepath.Join(out, filepath.Base(n)))
		if code != 0 || stderr != "" {
			t.Errorf("%s: code %d\n%s", n, code, stderr)
		}
		code, session, stderr := output(t, env, "contexts", "--agent", address, "notebook", id)
		if code != 0 || stderr != "" {
			t.Errorf("the session of %s: code %d\n%s", n, code, stderr)
		}
		if err := os.WriteFile(filepath.Join(sessions, filepath.Base(n)), []byte(session), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	agent.signal(syscall.SIGTERM)
	if code := agent.end(); code != 0 {
		t.Errorf("the agent ended with %d", code)
	}
	script("compare", in, out, sessions)
}

// What ends a notebook, and what has been saved by then.
func TestNotebookEnds(t *testing.T) {
	env := notebookEnv(t, pythons.Newest(t))
	dir := t.TempDir()
	for name, c := range map[string]struct {
		cells        []string
		args         []string
		code         int
		stderr, last string // of stderr; of the last cell's outputs
	}{
		"fails":   {[]string{"print('one')", "1/0", "print('two')"}, nil, exitError, "cell 2 of", "null"},
		"allowed": {[]string{"1/0", "print('two')"}, []string{"--allow-errors"}, exitOK, "", "two"},
		"timeout": {[]string{"import time\ntime.sleep(1000)"}, []string{"--timeout", "300ms"}, exitTimeout, "ended as timeout", "KeyboardInterrupt"},
		"dies": {[]string{"print('one', flush=True)\nimport os\nos.kill(os.getpid(), 9)"}, []string{"--allow-errors"}, exitLost,
			"ended as lost", "KernelDied"},
		"no cells": {nil, nil, exitOK, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			nb := map[string]any{"nbformat": 4, "nbformat_minor": 5, "metadata": map[string]any{}}
			cells := []any{}
			for _, code := range c.cells {
				cells = append(cells, map[string]any{"cell_type": "code", "id": "c", "source": code, "metadata": map[string]any{}, "outputs": nil, "execution_count": nil})
			}
			nb["cells"] = cells
			b, err := json.Marshal(nb)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, name+".ipynb")
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := output(t, env, append([]string{"run", file, "-o", file}, c.args...)...)
			if code != c.code || stdout != "" || !strings.Contains(stderr, c.stderr) || c.stderr == "" && stderr != "" {
				t.Errorf("code %d\nstdout %s\nstderr %s", code, stdout, stderr)
			}
			var got struct {
				Cells []struct{ Outputs json.RawMessage }
			}
			if b, err = os.ReadFile(file); err != nil || json.Unmarshal(b, &got) != nil || len(got.Cells) != len(c.cells) {
				t.Fatalf("%v: %s", err, b)
			}
			if n := len(got.Cells); n > 0 && !strings.Contains(string(got.Cells[n-1].Outputs), c.last) {
				t.Errorf("the last cell's outputs: %s", got.Cells[n-1].Outputs)
			}
			if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("%v %v", fi.Mode(), err)
			}
		})
	}
	bad := filepath.Join(dir, "bad.ipynb")
	for content, want := range map[string]string{"nonsense": "is no notebook", `{"nbformat":3}`: "nbconvert", `{"nbformat":4,"cells":[1]}`: "is no object"} {
		if err := os.WriteFile(bad, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := output(t, env, "run", bad, "-o", bad); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: code %d, %s", content, code, stderr)
		}
	}
	if code, _, stderr := output(t, env, "run", filepath.Join(dir, "fails.ipynb")); code != exitUsage || !strings.Contains(stderr, "with -o") {
		t.Errorf("without -o: code %d, %s", code, stderr)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".cellard-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
