package endtoend

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cellard/cellard/internal/fixture"
	"github.com/cellard/cellard/protocol/api"
)

// Two agents can't have one workspace, or one socket.
func TestTwoAgents(t *testing.T) {
	a := start(t, config{})
	a.cell("python", "v = 1")
	for want, o := range map[string]config{
		a.workspace: {workspace: a.workspace},
		a.socket:    {socket: a.socket},
	} {
		b := launch(t, o)
		if !b.waitEnd() {
			continue
		}
		if code := b.c.ProcessState.ExitCode(); code != 3 || !strings.Contains(b.log.String(), want) || !strings.Contains(b.log.String(), "another agent") {
			t.Errorf("%d %s", code, b.log)
		}
		// It failed as it should: its log is no fault.
		b.log = &fixture.Buffer{}
	}
	if got := a.cell("python", "v"); got != "1" {
		t.Error(got)
	}
}

// An agent that is asked to stop answers what runs, and leaves nothing.
func TestStop(t *testing.T) {
	a := start(t, config{})
	var running []*stream
	for _, c := range []struct{ id, code string }{
		{"sleeps", "print('in', flush=True)\nimport time; time.sleep(1000)"},
		{"deaf", "print('in', flush=True)\nimport itertools; sum(itertools.repeat(1))"},
		{"forks", "import subprocess\nchild = subprocess.Popen(['setsid', 'sh', '-c', 'trap \"\" INT TERM HUP; sleep 1000; sleep 1000'])\nprint('in', flush=True)\nchild.wait()"},
	} {
		a.create(c.id)
		s := a.stream(object{"context": c.id, "code": c.code, "timeoutMs": 0})
		s.text(api.KindStdout, "in")
		running = append(running, s)
	}
	queued := a.stream(object{"context": "sleeps", "code": "1"})
	a.create("idle")
	a.signal(syscall.SIGTERM)
	for _, s := range running {
		if x := s.rest(); x.Status != api.StatusLost || x.State != api.StateLost || x.Lost == nil || x.Lost.Reason != api.LostShutdown || x.Stdout != "in\n" {
			t.Errorf("%s", show(x))
		}
	}
	if x := queued.rest(); x.Status != api.StatusInterrupted || x.Error == nil || x.Error.Name != "ContextLost" {
		t.Errorf("%s", show(x))
	}
	if a.waitEnd() && a.c.ProcessState.ExitCode() != 0 {
		t.Errorf("%v", a.c.ProcessState)
	}
	if left := marked(a.instance); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if _, err := os.Stat(a.socket); err == nil {
		t.Error("its socket is left")
	}
}

// Nothing of a killed agent's kernels outlives it, and the next one begins where it
// can: with the files, without the variables.
func TestKill(t *testing.T) {
	o := config{workspace: fixture.Dir(t, 0o777), runtime: fixture.Dir(t, 0o711)}
	a := start(t, o)
	a.cell("python", "import subprocess\nfor how in (['setsid'], ['setsid', 'nohup'], []):\n  subprocess.Popen([*how, 'sh', '-c', 'trap \"\" INT TERM HUP; (sleep 1000 & sleep 1000 & wait) & wait'])")
	a.cell("python", "import os\nif os.fork() == 0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n  import time; time.sleep(1000)")
	x := a.run(object{"code": "from IPython.display import HTML, display\ndisplay(HTML('h' * 100000))"})
	ref := x.Results[0].Refs["text/html"]
	s := a.stream(object{"code": "print('in', flush=True)\nimport time; time.sleep(1000)"})
	s.text(api.KindStdout, "in")
	if n := len(marked(a.instance)); n < 8 {
		t.Errorf("only %d processes", n)
	}
	a.signal(syscall.SIGKILL)
	a.waitEnd()
	if _, err := s.next(); err == nil {
		t.Error("a stream goes on without its agent")
	}
	a.nothingLeft()
	if _, err := os.Stat(a.socket); err != nil {
		t.Fatal(err) // a dead socket is what the next one must cope with
	}
	o.socket = a.socket
	b := start(t, o)
	if b.instance == a.instance {
		t.Error("the same instance")
	}
	b.refused(404, api.CodeNotFound, "GET", "/v1/executions/"+x.ID, nil)
	if file, err := os.ReadFile(ref.Path); err != nil || string(file) != strings.Repeat("h", 100000) {
		t.Errorf("%s: %d bytes, %v", ref.Path, len(file), err)
	}
	if y := b.run(object{"code": "len(open(" + quote(ref.Path) + ").read())"}); y.Generation != 1 || plain(y.Results[0]) != "100000" {
		t.Errorf("%s", show(y))
	}
}

// A daemon that shed what tells whose it is (its session, its parent, its environment) ends
// with its kernel where that has a control group; else with the last kernel, as it can be
// nobody else's.
func TestDaemonWithoutMark(t *testing.T) {
	a := start(t, config{})
	daemon := func(context string) string {
		pid := a.cell(context, `
import os, subprocess
command = "echo $$; (sleep 1000 >/dev/null 2>&1 &) ; exec sleep 1000 >/dev/null 2>&1"
read, write = os.pipe()
subprocess.run(["setsid", "-f", "sh", "-c", command],
    env={"PATH": os.environ["PATH"]}, stdout=write)
os.close(write)
print(os.read(read, 100).decode().strip(), end="")`)
		if _, err := os.ReadFile("/proc/" + pid + "/stat"); err != nil {
			t.Fatalf("no daemon: %q %v", pid, err)
		}
		return pid
	}
	gone := func(pid string) {
		t.Helper()
		a.eventually("the daemon is gone", func() error {
			b, err := os.ReadFile("/proc/" + pid + "/stat")
			if err == nil && !strings.Contains(string(b), ") Z ") {
				return fmt.Errorf("%s", b)
			}
			return nil
		})
	}
	grouped := strings.Contains(a.cell("python", "print(open('/proc/self/cgroup').read())"), "/cellard-")
	t.Log("control groups:", grouped)
	first := daemon("python")
	a.remove("python")
	gone(first)
	second := daemon("python")
	a.create("other")
	a.remove("python")
	if grouped {
		gone(second)
	} else if _, err := os.ReadFile("/proc/" + second + "/stat"); err != nil {
		t.Errorf("killed though it may be another context's: %v", err)
	}
	a.signal(syscall.SIGTERM)
	if a.waitEnd() {
		gone(second)
	}
}

// What the agent's own starter ignored, as nohup and the background of a shell do, neither
// kernels nor their children ignore.
func TestIgnoredSignals(t *testing.T) {
	socket := filepath.Join(fixture.Dir(t, 0o755), "s")
	a := start(t, config{socket: socket, command: func(binary string, args ...string) *exec.Cmd {
		args = append([]string{"-c", `trap '' HUP INT; exec "$@"`, "sh", binary, "serve", "--listen", "unix://" + socket}, args...)
		return exec.Command("sh", args...)
	}})
	const code = "import signal, subprocess\n" +
		"print([signal.getsignal(s) is signal.SIG_IGN for s in (signal.SIGHUP, signal.SIGINT)])\n" +
		"print(subprocess.run(['sh', '-c', 'kill -HUP $$; echo on']).returncode)"
	if got := a.cell("python", code); got != "[False, False]\n-1\n" {
		t.Errorf("python: %q", got)
	}
	if x := a.run(object{"language": "bash", "code": "kill -HUP $BASHPID; echo on"}); x.Status != api.StatusError || x.State != api.StateKept || x.Error.Value != "129" {
		t.Errorf("bash: %s", show(x))
	}
	if x := a.run(object{"language": "python", "code": "import time; time.sleep(300)", "timeoutMs": 1000}); x.Status != api.StatusTimeout || x.State != api.StateKept {
		t.Errorf("a deadline: %s", show(x))
	}
}
