package guest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// An agent that is killed leaves no kernel, and nothing of what a cell has hidden from its
// session, its parents and its environment: the kernel's control group has it. The next
// agent serves.
func (m *machine) testKilled(t *testing.T) {
	x := m.run(object{"code": `
import os
def hide():
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.dup2(write, 1)
        os.execve("/bin/sh", ["sh", "-c", "trap '' INT TERM HUP; echo $$; exec sleep 1000 >/dev/null 2>&1"], {"PATH": os.environ["PATH"]})
    os.close(write)
    return os.read(read, 100).decode()
print(hide(), end="")
print(open("/proc/self/cgroup").read())`})
	pid, group, _ := strings.Cut(x.Stdout, "\n")
	if x.Status != api.StatusOK || pid == "" || !strings.Contains(group, "/cellard-") {
		t.Fatalf("%s", show(x))
	}
	lives := func() bool {
		return slices.ContainsFunc(m.processes(), func(p process) bool { return fmt.Sprint(p.Pid) == pid && p.State != "Z" })
	}
	if !lives() {
		t.Fatalf("nothing is hidden: %s: %+v", show(x), m.processes())
	}
	m.exec("kill", "-KILL", fmt.Sprint(m.agentState().Pid))
	m.eventually("nothing of it is left", func() error {
		if a := m.agentState(); !a.Ended {
			return fmt.Errorf("%+v", a)
		}
		if lives() {
			return errors.New("the hidden process lives")
		}
		for _, p := range m.processes() {
			if p.Pid != 1 && p.Parent != 1 {
				return fmt.Errorf("a process is left: %+v", p)
			}
		}
		if got := m.exec("sh", "-c", "ls -d /sys/fs/cgroup/cellard-* 2>/dev/null || true"); got != "" {
			return fmt.Errorf("groups are left: %s", got)
		}
		return nil
	})
	if err := ask(m.control, "POST", "/agent", nil, &agentState{}); err != nil {
		t.Fatal(err)
	}
	m.ready()
	if got := m.value("6 * 7"); got != "42" {
		t.Error(got)
	}
}

// At SIGTERM the running cell is answered, and nothing of the agent is left in the guest.
// Then it starts again, as an image's init would have it.
func (m *machine) testStop(t *testing.T) {
	if x := m.run(object{"code": "import subprocess\nchild = subprocess.Popen(['sh', '-c', 'trap \"\" INT TERM; sleep 1000'], start_new_session=True)"}); x.Status != api.StatusOK {
		t.Errorf("%s", show(x))
	}
	events, stop := m.stream(object{"code": "import time\nprint('go', flush=True)\ntime.sleep(1000)", "stream": true, "timeoutMs": 0})
	defer stop()
	agent := m.agentState()
	var last api.Event
	for e := range events {
		if e.K == api.KindStdout {
			m.exec("kill", "-TERM", fmt.Sprint(agent.Pid))
		}
		last = e
	}
	if x := last.Execution; x == nil || x.Status != api.StatusLost || x.Lost == nil || x.Lost.Reason != api.LostShutdown || x.Stdout != "go\n" {
		t.Errorf("the running cell: %s", show(last))
	}
	m.eventually("the agent has ended", func() error {
		if a := m.agentState(); !a.Ended {
			return fmt.Errorf("%+v", a)
		}
		return nil
	})
	if a := m.agentState(); a.Code != 0 {
		t.Errorf("it ended with %d", a.Code)
	}
	for _, p := range m.processes() {
		if p.Pid != 1 && p.Parent != 1 {
			t.Errorf("a process is left: %+v", p)
		}
	}
	if got := m.exec("sh", "-c", "ls -A /run /run/cellard 2>&1"); strings.Contains(got, "cellard.sock") || strings.Contains(got, "agent-") {
		t.Errorf("files are left: %s", got)
	}
	if err := ask(m.control, "POST", "/agent", nil, &agentState{}); err != nil {
		t.Fatal(err)
	}
	m.ready()
	if got := m.value("6 * 7"); got != "42" {
		t.Error(got)
	}
}

// A machine that is gone from one moment to the next leaves the host nothing but errors,
// and no process, file or goroutine.
func TestKilledMachine(t *testing.T) {
	m := boot(t)
	m.ready()
	events, stop := m.stream(object{"code": "1", "stream": true, "timeoutMs": 0})
	defer stop()
	idle, err := dial(t.Context(), m.uds, agentPort)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	m.qemu.kill()
	// The host's end of vsock outlives the machine, and may keep its connections open:
	// whoever runs machines ends it with them.
	m.vsock.kill()
	for e := range events {
		if e.K == api.KindExecution {
			t.Errorf("%s", show(e))
		}
	}
	_ = idle.SetReadDeadline(time.Now().Add(patience))
	if n, err := idle.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes from a machine that is gone", n)
	}
	if err := ask(m.agent, "GET", "/v1/health", nil, &api.Health{}); err == nil {
		t.Error("a machine that is gone answers")
	}
}
