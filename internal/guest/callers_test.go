package guest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/api"
)

// dialer is Python that calls the agent by vsock and prints what is answered. A peer that
// is refused gets a 401 at once, whatever it asks.
const dialer = `
import socket
def call(cid, port=52, source=None):
    s = socket.socket(socket.AF_VSOCK)
    s.settimeout(60)
    try:
        if source is not None:
            s.bind((source, socket.VMADDR_PORT_ANY))
        s.connect((cid, port))
        s.sendall(b"GET /v1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = b""
        while True:
            piece = s.recv(65536)
            if not piece:
                break
            answer += piece
        return answer.decode().split("\r\n")[0] or "closed"
    except OSError as e:
        return type(e).__name__
    finally:
        s.close()
`

// Whoever calls from inside the guest is refused, root too; the host is the one who
// makes all the other calls of these tests.
func (m *machine) testCallers(t *testing.T) {
	me := m.value("import os\nos.getuid()")
	if me == "0" {
		t.Fatal("cells run as root")
	}
	calls := fmt.Sprintf("print(call(1), call(%d), call(1, 53), sep='|', end='')", guestCID)
	refused := func(who, got string) {
		t.Helper()
		want := "HTTP/1.1 401 Unauthorized"
		if f := strings.Split(got, "|"); len(f) != 3 || f[0] != want || f[1] != want || strings.HasPrefix(f[2], "HTTP") {
			t.Errorf("%s calls: %s", who, got)
		}
	}
	x := m.run(object{"code": dialer + calls})
	refused("a cell", x.Stdout)
	refused("root", m.exec("python3", "-c", dialer+calls))
	// As the host, it can't pose: that CID is nobody's in a guest.
	if got := m.value("call(1, source=2) + call(42, source=2)"); strings.Contains(got, "200") {
		t.Errorf("a cell that poses as the host: %s", got)
	}
	if log := m.console.String(); !strings.Contains(log, "a peer was refused") {
		t.Error("the agent's log tells of no refusal")
	}
}

// An unprivileged cell can't take the agent's port or do anything to the agent.
func (m *machine) testBoundary(t *testing.T) {
	agent := m.agentState()
	for _, c := range []struct{ what, code string }{
		{"take the port", "socket.socket(socket.AF_VSOCK).bind((socket.VMADDR_CID_ANY, 52))"},
		{"take the port of its own CID", "socket.socket(socket.AF_VSOCK).bind((42, 52))"},
		{"take the loopback's port", "socket.socket(socket.AF_VSOCK).bind((1, 52))"},
		{"call the Unix socket", "socket.socket(socket.AF_UNIX).connect('/run/cellard.sock')"},
		{"kill the agent", fmt.Sprintf("os.kill(%d, 9)", agent.Pid)},
		{"read its environment", fmt.Sprintf("open('/proc/%d/environ').read()", agent.Pid)},
		{"read its memory", fmt.Sprintf("open('/proc/%d/mem', 'rb')", agent.Pid)},
		{"list its files", fmt.Sprintf("os.listdir('/proc/%d/fd')", agent.Pid)},
		{"kill PID 1", "os.kill(1, 9)"},
		{"read the disk", "open('/dev/vda', 'rb')"},
		{"list the runtime directory", "os.listdir('/run/cellard')"},
		{"change the agent's binary", "open('/usr/local/bin/cellard', 'ab')"},
		{"write to the log", "open('/dev/console', 'w')"},
		{"spare itself in want of memory", "open('/proc/self/oom_score_adj', 'wb', 0).write(b'0')"},
		{"become root", "os.setuid(0)"},
	} {
		x := m.run(object{"code": "import os, socket\n" + c.code})
		if x.Status != api.StatusError || x.Error == nil || x.Error.Name != "PermissionError" {
			t.Errorf("%s: %s", c.what, show(x))
		}
	}
	trace := "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nlibc.ptrace(16, %d, 0, 0), os.strerror(ctypes.get_errno())"
	if got := m.value(fmt.Sprintf(trace, agent.Pid)); got != "(-1, 'Operation not permitted')" {
		t.Errorf("trace the agent: %s", got)
	}
	search := `
import glob
found = []
for name in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    try:
        if b"guest-" b"secret" in open(name, "rb").read():
            found.append(name)
    except OSError:
        pass
found`
	if got := m.value(search); got != "[]" {
		t.Errorf("a cell finds the agent's token: %s", got)
	}
	if got := m.exec("cat", fmt.Sprintf("/proc/%d/environ", agent.Pid)); !strings.Contains(got, token) {
		t.Errorf("there is no token to be found, so this test is in vain: %q", got)
	}
	for _, p := range m.processes() {
		if strings.Contains(p.Command, "launcher.py") && p.UID == 0 {
			t.Errorf("a kernel runs as root: %+v", p)
		}
	}
	if now := m.agentState(); now != agent || !slices.ContainsFunc(m.processes(), func(p process) bool { return p.Pid == agent.Pid }) {
		t.Errorf("the agent was %+v and is %+v", agent, now)
	}
}
