package kernels

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// A kernel of our own is started by a descriptor that leads to the program, wherever it
// lies and whatever becomes of its file.
func TestLaunchOwn(t *testing.T) {
	dir := t.TempDir()
	self := filepath.Join(dir, "cellard")
	echo, err := exec.LookPath("echo")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(echo)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(self, data, 0o755); err != nil {
		t.Fatal(err)
	}
	c, root := machine(t, Options{Executable: self, FileBytes: 7})
	program(t, filepath.Join(root, "bin", "bash"), "printf 5.2.1")
	l, err := c.Launch(context.Background(), "bash")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{self, "kernel", "bash", "-f", "{connection_file}", "--interpreter", filepath.Join(root, "bin", "bash")}
	if !slices.Equal(l.Argv, want) || !l.CellEnv || !l.Own || l.InterruptMode != "message" || l.Transport != "ipc" || !slices.Contains(l.Env, "CELLARD_FILE_BYTES=7") {
		t.Errorf("%+v", l)
	}
	if err := os.Remove(self); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Cmd{Path: l.Program, Args: []string{"echo", "alive"}}
	if out, err := cmd.Output(); err != nil || string(out) != "alive\n" {
		t.Errorf("%q %v", out, err)
	}
	program(t, filepath.Join(root, "bin", "bash"), "printf 4.4.1")
	if l, err := c.Launch(context.Background(), "bash"); err == nil {
		t.Errorf("an old bash: %+v", l)
	}
}

// CELLARD_NODE is the agent's setting, which is not in the environment of kernels.
func TestLaunchNamedNode(t *testing.T) {
	named := filepath.Join(t.TempDir(), "mine")
	program(t, named, "echo v24.1.0")
	t.Setenv("CELLARD_NODE", named)
	c, root := machine(t, Options{})
	program(t, filepath.Join(root, "bin", "node"), "echo v20.12.0")
	for _, language := range []string{"javascript", "typescript"} {
		if l, err := c.Launch(context.Background(), language); err != nil || !slices.Contains(l.Argv, named) {
			t.Errorf("%s: %+v %v", language, l, err)
		}
	}
}
