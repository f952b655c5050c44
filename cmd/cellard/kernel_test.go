package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestKernelInstall(t *testing.T) {
	binary := buildBinary(t)
	prefix, home := t.TempDir(), t.TempDir()
	for dir, args := range map[string][]string{
		filepath.Join(prefix, "share", "jupyter"):         {"--prefix", prefix},
		filepath.Join(home, ".local", "share", "jupyter"): {"--user"},
	} {
		c := exec.Command(binary, append([]string{"kernel", "install", "bash"}, args...)...)
		c.Env = []string{"HOME=" + home, "CELLARD_USER=nobody"} // which is another flag's
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		var spec struct {
			Argv          []string `json:"argv"`
			Language      string   `json:"language"`
			InterruptMode string   `json:"interrupt_mode"`
		}
		b, err := os.ReadFile(filepath.Join(dir, "kernels", "bash", "kernel.json"))
		if err != nil {
			t.Error(err)
			continue
		}
		if err := json.Unmarshal(b, &spec); err != nil || spec.Language != "bash" || spec.InterruptMode != "message" ||
			!slices.Equal(spec.Argv, []string{binary, "kernel", "bash", "-f", "{connection_file}"}) {
			t.Errorf("%s %v", b, err)
		}
	}
	for _, args := range [][]string{{}, {"nosuch"}, {"bash", "--user", "--prefix", "x"}, {"bash", "--nonsense"}} {
		c := exec.Command(binary, append([]string{"kernel", "install"}, args...)...)
		if out, err := c.CombinedOutput(); c.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "cellard kernel") {
			t.Errorf("%q: %v %s", args, err, out)
		}
	}
}

// A kernel whose interpreter is ended ends in the same way, so that who started it learns
// the reason; one whose client has gone ends too.
func TestKernelEnds(t *testing.T) {
	for _, code := range []string{"exec 7> >(cat); kill -9 $BASHPID", "exec 7> >(cat); exec sh -c 'exit 7'"} {
		k := startOwnKernel(t, "bash")
		for _, text := range strings.SplitAfter(code, "; ") { // the pipe first: then there is no copy
			k.cell(text, nil)
		}
		status := k.awaitEnd()
		if strings.Contains(code, "kill") && status.Signal() != syscall.SIGKILL || !strings.Contains(code, "kill") && status.ExitStatus() != 7 {
			t.Errorf("%q: %v", code, k.cmd.ProcessState)
		}
	}
}
