package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/internal/pythons"
)

// TestMain makes the test binary be cellard where a test starts it as that, and where
// an agent of a test starts its keeper, or somebody a kernel of our own.
func TestMain(m *testing.M) {
	if os.Getenv("CELLARD_TEST_AS_MAIN") != "" || len(os.Args) > 1 && (os.Args[1] == "keeper" || os.Args[1] == "kernel") {
		main()
	}
	testscript.Main(m, map[string]func(){"cellard": main})
}

// patience bounds what would else hang; nothing here takes nearly as long.
const patience = time.Minute

// cellard is the command with a clean environment but for env.
func cellard(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Env = append([]string{"CELLARD_TEST_AS_MAIN=1", "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	return c
}

// output runs it to its end.
func output(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	c := cellard(t, env, args...)
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), errOut.String()
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args           string
		env            string
		code           int
		stdout, stderr string
	}{
		{args: "", code: 2, stderr: "Usage: cellard COMMAND"},
		{args: "--help", stdout: "serve the host API"},
		{args: "help", stdout: "serve the host API"},
		{args: "nonsense", code: 2, stderr: `no command "nonsense"`},
		{args: "version", stdout: "cellard "},
		{args: "--version", stdout: "cellard "},
		{args: "keeper", code: 2, stderr: "by itself"},
		{args: "serve --help", stdout: "--listen ADDRESS"},
		{args: "run -h", stdout: "-c CODE"},
		{args: "serve extra", code: 2, stderr: `unexpected argument "extra"`},
		{args: "serve --nonsense", code: 2, stderr: "-nonsense"},
		{args: "serve --max-body 1x", code: 2, stderr: "no size"},
		{args: "serve --max-body 0", code: 2, stderr: "above zero"},
		{args: "serve --max-queue -1", code: 2, stderr: "above zero"},
		{args: "serve --ping never", code: 2, stderr: "ping"},
		{args: "serve --allow-uid root", code: 2, stderr: `"root" is no uid`},
		{args: "serve --vsock-allow-cid -1", code: 2, stderr: `"-1" is no CID`},
		{args: "serve --log-level loud", code: 2, stderr: "log-level"},
		{args: "serve --tcp-any=perhaps", code: 2, stderr: "tcp-any"},
		{args: "serve", env: "CELLARD_MAX_BODY=1x", code: 2, stderr: `CELLARD_MAX_BODY="1x": "1x" is no size`},
		{args: "serve", env: "CELLARD_TCP_ANY=perhaps", code: 2, stderr: "CELLARD_TCP_ANY"},
		{args: "kernel bash extra -f file", code: 2, stderr: `unexpected argument "extra"`},
		{args: "kernel install --user nonsense", code: 2, stderr: `there is no kernel "nonsense"`},
		{args: "kernel install --nonsense bash", code: 2, stderr: "--nonsense"},
		{args: "run", code: 2, stderr: "there is no code"},
		{args: "run -c 1 file", code: 2, stderr: "no such file"},
		{args: "run -c 1 --timeout -1s", code: 2, stderr: "must not be negative"},
		{args: "run /nowhere/at/all", code: 2, stderr: "no such file"},
	} {
		var env []string
		if c.env != "" {
			env = []string{c.env}
		}
		code, stdout, stderr := output(t, env, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) ||
			c.stdout == "" && stdout != "" || c.stderr == "" && stderr != "" {
			t.Errorf("cellard %s with %s: code %d\nstdout %s\nstderr %s", c.args, c.env, code, stdout, stderr)
		}
	}
}

func TestRun(t *testing.T) {
	python := pythons.Newest(t)
	_, run, args := dirs(t)
	temp := fixture.Dir(t, 0o755)
	env := []string{"CELLARD_PYTHON=" + python, "TMPDIR=" + temp}
	file := filepath.Join(run, "cell.py")
	if err := os.WriteFile(file, []byte("print('from a file')"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"-c", "print('out')\n6*7"}, 0, "out\n42\n", ""},
		{[]string{file}, 0, "from a file\n", ""},
		{[]string{"-c", "import sys\nprint('e', file=sys.stderr)\n1/0"}, 1, "", "ZeroDivisionError"},
		{[]string{"-c", "while True: pass", "--timeout", "300ms"}, exitTimeout, "", "the cell ended as timeout"},
		{[]string{"-c", "1", "--language", "no-such-language"}, exitAgent, "", "no-such-language"},
		{[]string{"-c", "import os; os._exit(3)"}, exitLost, "", "the cell ended as lost"},
	} {
		code, stdout, stderr := output(t, env, append(append([]string{"run"}, args...), c.args...)...)
		if code != c.code || stdout != c.stdout || !strings.Contains(stderr, c.stderr) || c.stderr == "" && stderr != "" {
			t.Errorf("%q: code %d\nstdout %s\nstderr %s", c.args, code, stdout, stderr)
		}
	}
	if left, err := filepath.Glob(filepath.Join(run, "*")); err != nil || len(left) != 1 {
		t.Errorf("left in the runtime directory: %v %v", left, err)
	}
	temporary := func() []string {
		left, err := filepath.Glob(filepath.Join(temp, "cellard-run-*"))
		if err != nil {
			t.Fatal(err)
		}
		return left
	}
	if left := temporary(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	// A value too large to print has a path, and the file is still there.
	code, stdout, _ := output(t, env, append([]string{"run", "-c", "'a' * 100000"}, args...)...)
	if left := temporary(); code != 0 || len(left) != 1 || !strings.Contains(stdout, left[0]) {
		t.Errorf("code %d, left %v\n%.200s", code, left, stdout)
	}
}

// The first signal interrupts the cell.
func TestRunInterrupted(t *testing.T) {
	python := pythons.Newest(t)
	_, _, args := dirs(t)
	c := cellard(t, []string{"CELLARD_PYTHON=" + python}, append(append([]string{"run"}, args...), "-c",
		"import time\ntry:\n  print('in', flush=True)\n  time.sleep(1000)\nfinally:\n  print('out')")...)
	var log, out fixture.Buffer
	c.Stdout, c.Stderr = &out, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, c: c, log: &out, ended: make(chan error, 1)}
	go func() { s.ended <- c.Wait() }()
	t.Cleanup(func() { _ = c.Process.Kill() })
	s.logged("in\n")
	s.signal(syscall.SIGINT)
	if code := s.end(); code != exitInterrupted || out.String() != "in\nout\n" || !strings.Contains(log.String(), "interrupted") {
		t.Errorf("code %d\nstdout %s\nstderr %s", code, &out, &log)
	}
}
