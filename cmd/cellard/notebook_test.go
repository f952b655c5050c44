package main

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cellard/cellard/client"
	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/pythons"
	"github.com/cellard/cellard/notebook"
	"github.com/cellard/cellard/protocol/api"
)

// noNetwork has what a notebook fetches fail at once, and alike at each run.
var noNetwork = []string{"http_proxy=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9"}

func notebookEnv(t *testing.T, python string) []string {
	return []string{"CELLARD_PYTHON=" + python, "CELLARD_WORKSPACE=" + fixture.Dir(t, 0o777),
		"CELLARD_RUNTIME_DIR=" + fixture.Dir(t, 0o711), "TMPDIR=" + fixture.Dir(t, 0o755)}
}

// Notebooks of several kinds have the outputs that nbclient gives them, are valid, and
// are else as they were; and so has what the agent makes of each session afterwards.
func TestNotebooksAsNbclient(t *testing.T) {
	python := pythons.Named(t, "notebook")
	installKernels(t, "bash", "r")
	in := t.TempDir()
	notebookScript(t, python, "make", in)
	runAsNbclient(t, python, in, "")
}

// So have notebooks that others wrote, of several packages, languages and natures, which
// find what lies beside them; those of R on IRkernel too, and on the kernel that cellard has
// for R as far as the two say the same. Of those some cells fail: by intent, for they are for other
// versions, or because they fetch what isn't there.
func TestRealNotebooksAsNbclient(t *testing.T) {
	python := pythons.Named(t, "notebook")
	b, err := exec.Command("../../scripts/setup-notebooks.sh").Output()
	if err != nil {
		t.Fatalf("setup-notebooks.sh: %v", err)
	}
	installKernels(t, "javascript", "typescript", "java", "bash")
	in := t.TempDir()
	notebookScript(t, python, "real", strings.TrimSpace(string(b)), in)
	runAsNbclient(t, python, in, fixture.Dir(t, 0o777))
}

// installKernels has nbclient run the same kernels of our own.
func installKernels(t *testing.T, names ...string) {
	t.Helper()
	specs := t.TempDir()
	if code, _, stderr := output(t, nil, append([]string{"kernel", "install", "--prefix", specs}, names...)...); code != 0 {
		t.Fatalf("code %d\n%s", code, stderr)
	}
	t.Setenv("JUPYTER_PATH", filepath.Join(specs, "share", "jupyter"))
}

func notebookScript(t *testing.T, python string, args ...string) {
	t.Helper()
	c := exec.Command(python, append([]string{"testdata/notebook.py"}, args...)...)
	c.Env = append(os.Environ(), noNetwork...)
	if b, err := c.CombinedOutput(); err != nil {
		t.Fatalf("notebook.py %q: %v\n%s", args, err, b)
	}
}

// runAsNbclient runs the notebooks of a directory in an agent, each in a context of its own,
// and holds what came of them against nbclient. With work, each runs in a directory there,
// which has what lies beside it, and may fail.
func runAsNbclient(t *testing.T, python, in, work string) {
	out, sessions := t.TempDir(), t.TempDir()
	names, err := filepath.Glob(filepath.Join(in, "*.ipynb"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%v %v", names, err)
	}
	env := append(notebookEnv(t, python), noNetwork...)
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": filepath.Join(fixture.Dir(t, 0o777), "gitconfig"), // a notebook sets what is global
		"LC_ALL":            "C.UTF-8",                                         // R's quotes
	} {
		t.Setenv(name, value)
		env = append(env, name+"="+value)
	}
	address := "unix://" + filepath.Join(fixture.Dir(t, 0o755), "s")
	agent := startServe(t, env, "--listen", address)
	agent.logged("msg=serving")
	c, err := client.New(address, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, n := range names {
		file := filepath.Base(n)
		name := strings.TrimSuffix(file, ".ipynb")
		nb, err := notebook.Read(n)
		if err != nil {
			t.Fatal(err)
		}
		context := api.ContextRequest{ID: name, Language: nb.Language()}
		if strings.HasPrefix(name, "irkernel") { // another's kernel, as nbclient has it
			context.Language = "ir"
		}
		args := []string{"run", "--agent", address, "--context", name, "--timeout", "10m", n, "-o", filepath.Join(out, file)}
		if work != "" {
			context.Cwd = filepath.Join(work, name)
			err := errors.Join(os.CopyFS(context.Cwd, os.DirFS(filepath.Join(in, name))), os.Chmod(context.Cwd, 0o777))
			if err != nil {
				t.Fatal(err)
			}
			args = append(args, "--allow-errors")
		}
		if _, err := c.CreateContext(t.Context(), context); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := output(t, env, args...)
		if code != 0 || stderr != "" {
			t.Errorf("%s: code %d\n%s", n, code, stderr)
		}
		code, session, stderr := output(t, env, "contexts", "--agent", address, "notebook", name)
		if code != 0 || stderr != "" {
			t.Errorf("the session of %s: code %d\n%s", n, code, stderr)
		}
		if err := os.WriteFile(filepath.Join(sessions, file), []byte(session), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.DeleteContext(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	agent.signal(syscall.SIGTERM)
	if code := agent.end(); code != 0 {
		t.Errorf("the agent ended with %d", code)
	}
	args := []string{"compare", in, out, sessions}
	if work != "" {
		args = append(args, work)
	}
	notebookScript(t, python, args...)
}

// A session is told also where the disk has no room for a notebook, nor for what it has run:
// with what memory has kept, and what is missing.
func TestSessionOnFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small disk for an agent that is root")
	}
	disk, run := fixture.Dir(t, 0o755), fixture.Dir(t, 0o711)
	env := []string{"CELLARD_PYTHON=" + pythons.Newest(t)}
	address := "unix://" + filepath.Join(run, "s")
	c := cellard(t, env)
	const mount = `mount --make-rprivate / && mount -t tmpfs -o size=3m,mode=1777 tmpfs "$1" && exec "$0" serve --workspace "$1" --runtime-dir "$2" --listen "$3"`
	c.Args = []string{"sh", "-c", mount, c.Path, disk, run, address}
	c.Path = "/bin/sh"
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	s := startServed(t, c)
	s.logged("msg=serving")
	for _, code := range []string{
		"with open('fill', 'wb', buffering=0) as f:\n  try:\n    while f.write(b'x' * 1000): pass\n  except OSError as e: print(e.strerror)",
		"print('y' * 100_000)", "print('z' * 1_000)",
	} {
		if code, _, stderr := output(t, env, "run", "--agent", address, "-c", code); code != exitOK {
			t.Fatalf("code %d, %s", code, stderr)
		}
	}
	code, nb, stderr := output(t, env, "contexts", "notebook", "python", "--agent", address)
	var got struct {
		Cells []struct {
			Source  []string
			Outputs json.RawMessage
		}
		Metadata struct{ Cellard struct{ DroppedCells int } }
	}
	if err := json.Unmarshal([]byte(nb), &got); code != exitOK || err != nil || len(got.Cells) != 3 || got.Metadata.Cellard.DroppedCells != 0 {
		t.Fatalf("code %d, %v\n%s\n%s", code, err, stderr, nb)
	}
	for i, want := range []string{"No space left on device", "the disk was full", strings.Repeat("z", 1000)} {
		if c := got.Cells[i]; !strings.Contains(string(c.Outputs), want) || len(c.Source) == 0 {
			t.Errorf("cell %d: %q\n%s", i, c.Source, c.Outputs)
		}
	}
	if code, _, stderr := output(t, env, "contexts", "notebook", "python", "--agent", address); code != exitOK {
		t.Errorf("the second time: code %d, %s", code, stderr)
	}
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("the agent ended with %d", code)
	}
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
	for content, want := range map[string]string{"nonsense": "is no notebook", `{"nbformat":3}`: "nbconvert", `{"nbformat":4,"cells":[1]}`: "cell 1 is no object",
		`{"nbformat":4,"cells":[{"source":["a"]},{"source":3}]}`:              "source of cell 2 is neither",
		`{"nbformat":4,"cells":[{"cell_type":"code","source":["1\n",null]}]}`: "source of cell 1 is neither"} {
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

// What lies where the notebook is to be written is never replaced by it, unless it is a
// file; a link leads to one. What is refused is so before an agent is called.
func TestNotebookOutput(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	const empty = `{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}`
	for _, name := range []string{"in.ipynb", "target"} {
		if err := os.WriteFile(at(name), []byte(empty), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, err := range []error{syscall.Mkfifo(at("fifo"), 0o600), os.Mkdir(at("directory"), 0o700), os.Symlink("fifo", at("link to FIFO")),
		os.Symlink("none", at("dangling")), os.Symlink("target", at("link"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	modes := func() (all []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, e.Name()+" "+e.Type().String())
		}
		return all
	}
	before := modes()
	for name, want := range map[string]string{"fifo": "a FIFO", "directory": "a directory", "socket": "a socket", "link to FIFO": "a FIFO", "dangling": "leads nowhere"} {
		code, _, stderr := output(t, nil, "run", "--agent", "unix://"+at("nobody"), at("in.ipynb"), "-o", at(name))
		if code != exitUsage || !strings.Contains(stderr, want) || !strings.Contains(stderr, "name a") {
			t.Errorf("%s: code %d, %s", name, code, stderr)
		}
	}
	if code, _, stderr := output(t, nil, "run", "--agent", "unix://"+at("nobody"), at("in.ipynb"), "-o", at("none/out")); code != exitUsage || !strings.Contains(stderr, "no directory "+at("none")+"; make it") {
		t.Errorf("no directory: code %d, %s", code, stderr)
	}
	env := []string{"CELLARD_WORKSPACE=" + fixture.Dir(t, 0o777), "CELLARD_RUNTIME_DIR=" + fixture.Dir(t, 0o711), "TMPDIR=" + fixture.Dir(t, 0o755)}
	if code, _, stderr := output(t, env, "run", at("in.ipynb"), "-o", at("link")); code != 0 {
		t.Errorf("through a link: code %d, %s", code, stderr)
	}
	if after := modes(); !slices.Equal(after, before) {
		t.Errorf("it was %q, and is %q", before, after)
	}
	if b, err := os.ReadFile(at("target")); err != nil || string(b) == empty {
		t.Errorf("the link's target has not been written: %q %v", b, err)
	}
}
