package guest

import (
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/api"
)

// The guest's own accounting tells what a cell took.
func (m *machine) testUsage(t *testing.T) {
	x := m.run(object{"code": "import time\nend = time.process_time() + 1\nwhile time.process_time() < end: pass\nb = bytearray(100_000_000)\ndel b"})
	if u := x.Usage; x.Status != api.StatusOK || u == nil || u.CPUMs == nil || *u.CPUMs < 900 || u.PeakRSSBytes == nil || *u.PeakRSSBytes < 100_000_000 {
		t.Error(show(x))
	}
}

// hog takes all memory that there is.
const hog = "hoard = []\nwhile True: hoard.append(bytearray(b'x' * 4_000_000))"

// A cell that takes all of the guest's memory is lost, and says why; the agent and other
// contexts live on.
func (m *machine) testOutOfMemory(t *testing.T) {
	agent := m.agentState()
	for _, p := range m.processes() {
		if kernel := p.UID != 0; kernel != (p.OOMScoreAdj > 0) {
			t.Errorf("where memory runs out, kernels go first, and not %+v", p)
		}
	}
	// A child's end is that child's, and the variables are kept.
	x := m.run(object{"code": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', '''" + hog + "''']).returncode", "timeoutMs": 0})
	if x.Status != api.StatusOK || x.State != api.StateKept || plain(x) != "-9" {
		t.Errorf("a child that takes all memory: %s", show(x))
	}
	// From then on a kernel that is killed was not killed for want of memory.
	x = m.run(object{"code": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"})
	if x.Status != api.StatusLost || x.Lost == nil || x.Lost.Reason != api.LostSignal {
		t.Errorf("a kernel that kills itself: %s", show(x))
	}
	x = m.run(object{"code": "x = 6 * 7\nprint('before', flush=True)\n" + hog, "timeoutMs": 0})
	if x.Status != api.StatusLost || x.State != api.StateLost || x.Lost == nil || x.Lost.Reason != api.LostOOM || x.Stdout != "before\n" {
		t.Errorf("a cell that takes all memory: %s", show(x))
	}
	generation := x.Generation
	x = m.run(object{"code": "'x' in globals()"})
	if x.Status != api.StatusOK || plain(x) != "False" || x.Generation != generation+1 || !x.ContextStarted {
		t.Errorf("the next cell: %s", show(x))
	}
	if now := m.agentState(); now != agent {
		t.Errorf("the agent was %+v and is %+v", agent, now)
	}
	if log := m.console.String(); strings.Contains(log, "level=ERROR") {
		t.Error("the agent's log has errors")
	}
}
