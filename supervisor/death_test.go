package supervisor

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/api"
)

// A kernel that dies at any step of a cell: the cell is lost, with all that it had put
// out; the cells that wait never run; the next request has a fresh kernel.
func TestDeathUnderACell(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	for i, c := range []struct {
		code, out, signal string
		reason            api.LostReason
		exit              int
	}{
		{lines("!die-before-busy", "print a"), "", "SIGKILL", api.LostSignal, -1},
		{lines("!die-after-busy", "print a"), "", "SIGKILL", api.LostSignal, -1},
		{lines("print a", "!die-before-idle"), "a\n", "SIGKILL", api.LostSignal, -1},
		{lines("print a", "!die-after-idle"), "a\n", "SIGKILL", api.LostSignal, -1},
		{lines("print a", "!die-after-reply"), "a\n", "SIGKILL", api.LostSignal, -1},
		{lines("print a", "exit 7"), "a\n", "", api.LostExit, 7},
		{lines("print a", "exit 0"), "a\n", "", api.LostExit, 0},
		{lines("print a", "sh kill -TERM $PPID; sleep 100"), "a\n", "SIGTERM", api.LostSignal, -1},
	} {
		a.ok(a.cell("set x 1"))
		gate := a.queue("sleep 300")
		r := a.queue(c.code)
		queued := []*Run{a.queue("print never"), a.queue("print never")}
		a.ok(a.end(gate))
		x := a.end(r)
		a.lostBy(x, c.reason, c.signal, c.exit)
		if x.Stdout != c.out || x.Generation != i+1 || x.Incomplete {
			t.Errorf("%q: %s", c.code, show(x))
		}
		checkEvents(t, a.events(r))
		// At once: what waits has been taken out by now.
		next := a.queue("get x")
		for _, q := range queued {
			y := a.end(q)
			a.is(y, api.StatusInterrupted, api.StateLost, "ContextLost")
			if y.Stdout != "" || y.ContextStarted {
				t.Errorf("%q: a waiting cell: %s", c.code, show(y))
			}
		}
		y := a.end(next)
		a.is(y, api.StatusError, api.StateKept, "NameError")
		if !y.ContextStarted || y.Generation != i+2 {
			t.Errorf("%q: the next cell: %s", c.code, show(y))
		}
	}
}

// All that a kernel had sent before it died arrives.
func TestDeathAfterAFlood(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("print start"))
	x := a.cell(lines("!flood 20000", "exit 1"))
	a.lostBy(x, api.LostExit, "", 1)
	if !strings.HasSuffix(x.Stdout, "line 20000\n") || strings.Count(x.Stdout, "\n") != 20000 || x.LostBytes != 0 {
		t.Errorf("%d lines arrived", strings.Count(x.Stdout, "\n"))
	}
}

// The raw last words of a kernel tell why it died.
func TestLastWords(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("print start"))
	x := a.cell(lines("sh echo malloc: corrupted >&2", "exit 134"))
	a.lostBy(x, api.LostExit, "", 134)
	if !strings.Contains(x.Lost.Message, "malloc: corrupted") || !strings.Contains(x.Stderr, "malloc: corrupted") {
		t.Errorf("last words: %s", show(x))
	}
}

// A kernel that dies while idle: the next cell runs on another one and says so.
func TestDeathWhileIdle(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("set x 1"))
	c, err := a.Context("fake")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(c.ProcessID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	x := a.cell("print a") // at once: nobody may have noticed yet
	if x.Status == api.StatusOK {
		if x.State != api.StateLost || x.Lost == nil || x.Lost.Reason != api.LostSignal || *x.Lost.Signal != "SIGKILL" || !x.ContextStarted || x.Generation != 2 {
			t.Errorf("want ok with state lost: %s", show(x))
		}
	} else { // it was sent before the end could be seen
		a.lostBy(x, api.LostSignal, "SIGKILL", -1)
	}

	generationNow := func() int { c, _ := a.Context("fake"); return c.Generation }
	a.cell("print alive")
	before := generationNow()
	c, _ = a.Context("fake")
	_ = syscall.Kill(c.ProcessID, syscall.SIGTERM)
	a.until("the context is dead", func() bool { c, _ := a.Context("fake"); return c.State == api.ContextDead })
	if c, _ := a.Context("fake"); c.ProcessID != 0 {
		t.Errorf("a dead context has the process %d", c.ProcessID)
	}
	if _, err := a.Run(request("get x", generation(before))); code(err) != api.CodeGeneration {
		t.Errorf("a run for the generation that is gone: %v", err)
	}
	x = a.cell("print b")
	if x.Status != api.StatusOK || x.State != api.StateLost || x.Lost == nil || x.Lost.Signal == nil || *x.Lost.Signal != "SIGTERM" || !x.ContextStarted || x.Generation != before+1 {
		t.Errorf("want ok with state lost: %s", show(x))
	}
	a.ok(a.cell("print c")) // told once
}

// A kernel whose end is seen only when a cell can't be sent: that cell has not run, and
// is for the next kernel. Where the process lives on and takes nothing, the cell is lost.
func TestUnsent(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("set x 1"))
	c, _ := a.Context("fake")
	s := a.session("fake")
	// send does what the context's goroutine does, past its own look at the process.
	send := func(code string, broken func()) (r *Run) {
		s.do(func() {
			broken()
			r = a.queue(code)
			s.send(s.takeQueue()[0])
		})
		return r
	}
	r := send("print a", func() {
		_ = syscall.Kill(c.ProcessID, syscall.SIGKILL)
		a.until("the kernel has ended", func() bool { return s.k.client.Err() != nil && !alive(c.ProcessID) })
		_ = s.k.client.Close()
	})
	x := a.end(r)
	if x.Status != api.StatusOK || x.State != api.StateLost || x.Stdout != "a\n" || x.Generation != 2 || !x.ContextStarted ||
		x.Lost == nil || x.Lost.Reason != api.LostSignal || *x.Lost.Signal != "SIGKILL" {
		t.Errorf("want ok with state lost: %s", show(x))
	}
	checkEvents(t, a.events(r))

	x = a.end(send("print b", func() { _ = s.k.client.Close() }))
	a.lostBy(x, api.LostUnresponsive, "", -1)
	if x.Stdout != "" {
		t.Errorf("it ran: %s", show(x))
	}
	a.fresh(3)
}

// A kernel that ignores every interrupt is killed at the ladder's end.
func TestUnresponsive(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(o *Options) { o.InterruptGrace = 1500 * time.Millisecond })
	a.cell("set x 1")
	r := a.queue(lines("print a", "!deaf", "sleep 3600000"), timeout(200*time.Millisecond))
	queued := a.queue("print never")
	x := a.end(r)
	a.lostBy(x, api.LostUnresponsive, "", -1) // and never a timeout
	if x.Stdout != "a\n" || !strings.Contains(x.Lost.Message, "did not stop") {
		t.Error(show(x))
	}
	a.is(a.end(queued), api.StatusInterrupted, api.StateLost, "ContextLost")
	a.fresh(2)
}

// One that a cell has stopped (SIGSTOP) is woken for its interrupt, and keeps its state.
func TestFrozen(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.cell("set x 1")
	a.is(a.cell(lines("print a", "!freeze", "sleep 3600000"), timeout(200*time.Millisecond)), api.StatusTimeout, api.StateKept, "KeyboardInterrupt")
	a.kept()
}

// Children go with their kernel, wherever they hide: in a session of their own,
// orphaned, or both.
func TestNothingOutlivesItsKernel(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	const start = "sh setsid sleep 1000 & (sleep 1000 &) ; (setsid sleep 1000 > /dev/null 2>&1 &) ; sleep 1000 &"
	for _, end := range []string{"exit", "restart", "delete"} {
		a.ok(a.cell(start))
		a.until("the children run", func() bool { return len(a.processes()) == 5 })
		old, _ := a.Context("fake")
		switch end {
		case "exit":
			a.lostBy(a.cell("exit 1"), api.LostExit, "", 1)
			if left := a.processes(); len(left) != 0 {
				t.Errorf("%s: left: %+v", end, left)
			}
		case "restart":
			c, err := a.Restart(context.Background(), "fake")
			if err != nil || c.Generation != old.Generation+1 {
				t.Errorf("%+v, %v", c, err)
			}
			if left := a.processes(); len(left) != 1 {
				t.Errorf("%s: left: %+v", end, left)
			}
		case "delete":
			if err := a.Delete(context.Background(), "fake"); err != nil {
				t.Error(err)
			}
			if left := a.processes(); len(left) != 0 {
				t.Errorf("%s: left: %+v", end, left)
			}
		}
	}
	a.until("orphans are reaped", reaped)
}

// A kernel that is killed is said to have run out of memory only if the system's OOM
// killer struck since its last cell began, not when it once took a child.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("set x 1"))
	if procfs.OOMKills() < 0 {
		t.Fatal("/proc/vmstat does not tell of the OOM killer here")
	}
	s := a.session("fake")
	struck := func() { s.do(func() { s.k.oomsAt-- }) } // as one more since would look
	struck()
	a.lostBy(a.cell("!die-after-busy"), api.LostSignal, "SIGKILL", -1)

	a.ok(a.cell("set x 1"))
	r := a.queue(lines("print a", "sleep 300000"))
	a.until("the cell runs", func() (running bool) {
		s.do(func() { running = s.cur != nil && s.cur.busy })
		return running
	})
	struck()
	c, _ := a.Context("fake")
	_ = syscall.Kill(c.ProcessID, syscall.SIGKILL)
	a.lostBy(a.end(r), api.LostOOM, "SIGKILL", -1)

	a.ok(a.cell("set x 1"))
	struck()
	c, _ = a.Context("fake")
	_ = syscall.Kill(c.ProcessID, syscall.SIGKILL)
	a.until("the context is dead", func() bool { c, _ := a.Context("fake"); return c.State == api.ContextDead })
	if x := a.cell("print b"); x.Status != api.StatusOK || x.State != api.StateLost || x.Lost == nil || x.Lost.Reason != api.LostOOM {
		t.Errorf("killed while idle: %s", show(x))
	}
}

// Where memory runs out the system takes a kernel, or a child of one, before the agent.
func TestKernelsGoFirst(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("sh sleep 1000 &"))
	a.until("the child runs", func() bool { return len(a.processes()) == 2 })
	mine, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range a.processes() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.PID))
		if err != nil || string(b) != "500\n" || string(mine) == "500\n" {
			t.Errorf("process %d has %q, %v; the agent %q", p.PID, b, err, mine)
		}
	}
}
