package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What LISTEN_FDS says and isn't so keeps the agent from starting, with a line that says
// why, whatever the number is.
func TestHandedOverIsChecked(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, c := range []struct {
		n     string
		files []*os.File
		want  string
	}{
		{"-1", nil, "from 0 to 64"},
		{"65", nil, "from 0 to 64"},
		{"1000000000", nil, "from 0 to 64"},
		{"99999999999999999999", nil, "from 0 to 64"},
		{"two", nil, "from 0 to 64"},
		{"", nil, "from 0 to 64"},
		{"1", nil, "descriptor 3 is no socket"},
		{"64", nil, "descriptor 3 is no socket"},
		{"1", []*os.File{file}, "descriptor 3 is no socket"},
		{"2", []*os.File{socket}, "descriptor 4 is no socket"},
	} {
		cmd := exec.Command("/bin/sh", "-c", `export LISTEN_PID=$$; exec "$0" serve`, self)
		cmd.Env = []string{"CELLARD_TEST_AS_MAIN=1", "PATH=" + os.Getenv("PATH"), "LISTEN_FDS=" + c.n}
		cmd.ExtraFiles = c.files
		b, err := cmd.CombinedOutput()
		if code := exitCode(err); code != exitUsage || !strings.Contains(string(b), c.want) || strings.Count(string(b), "\n") != 1 {
			t.Errorf("LISTEN_FDS=%s with %d files: code %d, %.500s", c.n, len(c.files), code, b)
		}
	}
}
