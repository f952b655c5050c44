package supervisor

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/api"
	"golang.org/x/sys/unix"
)

// hidden leaves a process that nothing but its control group ties to the kernel: it has a
// session of its own, another parent, no environment, and ignores what can be ignored. It
// prints its id.
const hidden = `sh f=$(mktemp); (env -i setsid sh -c 'trap "" INT TERM HUP; echo $$ > "$0"; exec sleep 1000 > /dev/null 2>&1' "$f" &);` +
	` until [ -s "$f" ]; do sleep 0.01; done; cat "$f"; rm "$f"`

// grouped is an agent whose kernels have control groups, if that can be had here.
func grouped(t *testing.T) *agent {
	t.Helper()
	a := newAgent(t, nil)
	if a.groups == nil {
		t.Skip("no control groups here:", a.logs)
	}
	return a
}

// hide runs hidden, and then more; it returns the hidden process.
func (a *agent) hide(more string, set ...with) (*Run, int) {
	a.t.Helper()
	r := a.queue(lines(hidden, more), set...)
	a.shows(r, "\n")
	x, _ := r.Snapshot()
	pid, err := strconv.Atoi(strings.TrimSpace(x.Stdout))
	if err != nil || !alive(pid) {
		a.t.Fatalf("no hidden process: %v, %s", err, show(x))
	}
	a.t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
	for _, s := range a.processes() {
		if s.PID == pid {
			a.t.Fatal("it has the mark")
		}
	}
	return r, pid
}

// What is hidden goes with its own kernel, and with no other's.
func TestHiddenGoesWithItsKernel(t *testing.T) {
	t.Parallel()
	a := grouped(t)
	for _, id := range []string{"one", "two"} {
		a.context(id, func(c *api.ContextRequest) { c.Language = "fake" })
	}
	r, other := a.hide("print", in("two"))
	a.ok(a.end(r))
	for _, end := range []string{"exit", "kill", "restart", "delete"} {
		r, pid := a.hide("print", in("one"))
		a.ok(a.end(r))
		switch end {
		case "exit":
			a.lostBy(a.cell("exit 1", in("one")), api.LostExit, "", 1)
		case "kill":
			c, _ := a.Context("one")
			_ = unix.Kill(c.ProcessID, unix.SIGKILL)
			a.until("the context is dead", func() bool { c, _ := a.Context("one"); return c.State == api.ContextDead })
			a.cell("print", in("one"))
		case "restart":
			if _, err := a.Restart(context.Background(), "one"); err != nil {
				t.Fatal(err)
			}
		case "delete":
			if err := a.Delete(context.Background(), "one"); err != nil {
				t.Fatal(err)
			}
		}
		a.until(end+": the hidden process has ended", func() bool { return !alive(pid) })
		if !alive(other) {
			t.Fatalf("%s: another kernel's process ended with it", end)
		}
	}
	dir := a.groups.Dir()
	if err := a.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	a.until("the other's has ended", func() bool { return !alive(other) })
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the groups are left: %v", err)
	}
}

// A deadline takes what its own cell has hidden, and nothing of an earlier one.
func TestHiddenGoesWithItsCell(t *testing.T) {
	t.Parallel()
	a := grouped(t)
	r, early := a.hide("print")
	a.ok(a.end(r))
	time.Sleep(2 * procfs.Tick) // the moment's own precision
	r, pid := a.hide("sleep 3600000", timeout(2*time.Second))
	a.is(a.end(r), api.StatusTimeout, api.StateKept, "KeyboardInterrupt")
	a.until("it has ended", func() bool { return !alive(pid) })
	if !alive(early) {
		t.Error("an earlier cell's process ended with it")
	}
}

// What a child spends that still runs is the cell's too.
func TestUsageOfWhatStillRuns(t *testing.T) {
	t.Parallel()
	a := grouped(t)
	x := a.cell(`sh (while :; do :; done) & while [ "$(cut -d' ' -f14 /proc/$!/stat)" -lt 20 ]; do sleep 0.01; done`)
	a.ok(x)
	if x.Usage == nil || x.Usage.CPUMs == nil || *x.Usage.CPUMs < 200 || *x.Usage.CPUMs > 4*x.DurationMs+1000 {
		t.Errorf("a child spent 200 ms and more: %s", show(x))
	}
}
