package guest

import (
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// One machine, since booting one is what takes the time. The order is part of it: what
// ends kernels comes after what needs their variables, and the agent's end is last.
func TestGuest(t *testing.T) {
	m := boot(t)
	m.ready()
	t.Logf("under emulation, from power-on to the first health: %.1f s", time.Since(m.since).Seconds())
	if got := m.value("x = 6 * 7\nx"); got != "42" {
		t.Fatalf("x: %s", got)
	}
	t.Logf("under emulation, from power-on to the first cell's end: %.1f s", time.Since(m.since).Seconds())
	begin := time.Now()
	if got := m.value("x + 1"); got != "43" {
		t.Fatalf("the state is not kept: %s", got)
	}
	t.Logf("under emulation, a small cell: %d ms", time.Since(begin).Milliseconds())
	for _, c := range []struct {
		name string
		test func(*machine, *testing.T)
	}{
		{"Listens", (*machine).testListens},
		{"Outcomes", (*machine).testOutcomes},
		{"Client", (*machine).testClient},
		{"Ref", (*machine).testRef},
		{"Stream", (*machine).testStream},
		{"MuchOutput", (*machine).testMuchOutput},
		{"KeepAlive", (*machine).testKeepAlive},
		{"ManyConnections", (*machine).testManyConnections},
		{"Callers", (*machine).testCallers},
		{"Boundary", (*machine).testBoundary},
		{"Usage", (*machine).testUsage},
		{"OutOfMemory", (*machine).testOutOfMemory},
		{"Killed", (*machine).testKilled},
		{"Stop", (*machine).testStop},
	} {
		if !t.Run(c.name, func(t *testing.T) { m.on(t, c.test) }) && m.hasEnded() {
			break
		}
	}
}

// With no address asked for, the agent found vsock by itself.
func (m *machine) testListens(t *testing.T) {
	log := m.console.String()
	for _, want := range []string{"address=vsock://:52", "address=unix:///run/cellard.sock"} {
		if !strings.Contains(log, want) {
			t.Errorf("the agent does not say %s", want)
		}
	}
}

func (m *machine) testOutcomes(t *testing.T) {
	x := m.run(object{"code": "while True: pass", "timeoutMs": 2000})
	if x.Status != api.StatusTimeout || x.State != api.StateKept {
		t.Errorf("a deadline: %s", show(x))
	}
	x = m.run(object{"code": "print('before')\n{}['nothing']"})
	if x.Status != api.StatusError || x.Error == nil || x.Error.Name != "KeyError" || x.Stdout != "before\n" {
		t.Errorf("an error: %s", show(x))
	}
	x = m.run(object{"code": "import subprocess\nsubprocess.run(['sh', '-c', 'echo out; echo err >&2'])\nprint(x)"})
	if x.Status != api.StatusOK || x.Stdout != "out\n42\n" || x.Stderr != "err\n" {
		t.Errorf("a child's output, and the variables after all: %s", show(x))
	}
}
