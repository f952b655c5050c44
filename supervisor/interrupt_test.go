package supervisor

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/api"
)

func TestInterrupt(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	for _, spec := range []string{"fake", "fake-message"} {
		a.ok(a.cell("set x 1", language(spec)))
		if did, err := a.Interrupt(context.Background(), spec); did || err != nil {
			t.Errorf("an idle context was interrupted: %v, %v", did, err)
		}
		for _, byID := range []bool{false, true} {
			r := a.queue(lines("print a", "sleep 3600000"), language(spec))
			waits := a.queue("print b", language(spec))
			never := a.queue("print never", language(spec))
			a.shows(r, "a")
			if c, _ := a.Context(spec); c.State != api.ContextBusy {
				t.Errorf("state is %s", c.State)
			}
			if did, err := a.InterruptExecution(never.ID()); !did || err != nil {
				t.Errorf("interrupt of a waiting cell: %v, %v", did, err)
			}
			y := a.end(never) // though the other still runs
			a.is(y, api.StatusInterrupted, api.StateKept, "Interrupted")
			if y.Stdout != "" || y.Generation != 1 {
				t.Errorf("a cell that never ran: %s", show(y))
			}
			var did bool
			var err error
			if byID {
				did, err = a.InterruptExecution(r.ID())
			} else {
				did, err = a.Interrupt(context.Background(), spec)
			}
			if !did || err != nil {
				t.Errorf("interrupt: %v, %v", did, err)
			}
			x := a.end(r)
			a.is(x, api.StatusInterrupted, api.StateKept, "KeyboardInterrupt")
			if x.Stdout != "a\n" {
				t.Errorf("output: %q", x.Stdout)
			}
			a.ok(a.end(waits)) // the interrupt does not hit the next one
			a.kept(language(spec))
			if did, err := a.InterruptExecution(r.ID()); did || err != nil {
				t.Errorf("interrupt of a cell that has ended: %v, %v", did, err)
			}
		}
	}
	if _, err := a.InterruptExecution("e_nobody"); code(err) != api.CodeNotFound {
		t.Errorf("no execution: %v", err)
	}
	if _, err := a.Interrupt(context.Background(), "nobody"); code(err) != api.CodeNotFound {
		t.Errorf("no context: %v", err)
	}
}

func alive(pid int) bool {
	s, ok := procfs.Read(pid)
	return ok && s.State != 'Z'
}

// What an earlier cell started lives on; what this cell started is interrupted, and
// killed where it ignores that.
func TestInterruptAndChildren(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	early, err := strconv.Atoi(main1(a.cell("spawn 1000")))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * procfs.Tick) // the moment's own precision
	for _, script := range []string{
		"sh echo $$; exec sleep 1000",
		"sh setsid sh -c 'echo $$; exec sleep 1000'",
		"sh trap '' INT; echo $$; while :; do sleep 1000; done",
		"sh trap '' INT TERM; echo $$; while :; do sleep 1000; done",
	} {
		r := a.queue(script)
		a.shows(r, "\n")
		x, _ := r.Snapshot()
		pid, err := strconv.Atoi(strings.TrimSpace(x.Stdout))
		if err != nil {
			t.Fatal(err)
		}
		if !alive(pid) {
			t.Errorf("%s: ended before its interrupt", script)
		}
		_, _ = a.InterruptExecution(r.ID())
		x = a.end(r)
		if x.Status != api.StatusInterrupted || x.State != api.StateKept {
			t.Errorf("%s: %s", script, show(x))
		}
		if alive(pid) {
			t.Errorf("%s: outlived its interrupt", script)
		}
		if !alive(early) {
			t.Fatalf("%s: took a child of an earlier cell with it", script)
		}
	}
}

// Nothing that a stopped cell has started takes a further step because another has ended.
func TestStoppedCellTakesNoStep(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	for _, script := range []string{
		"(sleep 300; echo STEP) & echo ready; wait; echo STEP",
		"bash -c '(sleep 300; echo STEP) & echo ready; wait; echo STEP'; echo STEP",
		"bash -c '(trap \"\" INT; echo ready; sleep 300; echo STEP); echo STEP'; echo STEP",
		"bash -c '(trap \"\" INT TERM; echo ready; sleep 300; echo STEP) & sleep 300; echo STEP'; echo STEP",
	} {
		r := a.queue("sh " + script)
		a.shows(r, "ready\n")
		time.Sleep(100 * time.Millisecond) // until it sleeps: what is met before goes as well
		_, _ = a.InterruptExecution(r.ID())
		x := a.end(r)
		if x.Status != api.StatusInterrupted || x.State != api.StateKept || strings.Contains(x.Stdout, "STEP") {
			t.Errorf("%s: %s", script, show(x))
		}
	}
}

// What cleans up at SIGTERM is told once: a second one means haste to many.
func TestStoppedCellTellsOnce(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	script := "(trap '' INT; trap 'echo term' TERM; echo ready; while :; do sleep 0.02; done) &"
	r := a.queue(lines("sh "+script, "sleep 3600000"))
	a.shows(r, "ready\n")
	_, _ = a.InterruptExecution(r.ID())
	if x := a.end(r); x.Status != api.StatusInterrupted || x.Stdout != "ready\nterm\n" {
		t.Error(show(x))
	}
}

// What forks faster than it can be looked for ends too, whether or not it can be made to
// stand still.
func TestStoppedCellForks(t *testing.T) {
	t.Parallel()
	t.Run("groups", func(t *testing.T) { stoppedCellForks(t, grouped(t)) })
	t.Run("no groups", func(t *testing.T) {
		a := newAgent(t, nil)
		groups := a.groups
		a.groups = nil
		t.Cleanup(groups.Close)
		stoppedCellForks(t, a)
	})
}

func stoppedCellForks(t *testing.T, a *agent) {
	mark := fmt.Sprintf("chain_%d", time.Now().UnixNano())
	script := "trap '' INT TERM; f() { [ $1 -gt 10000 ] || f $(($1 + 1)) & }; " + // it ends by itself
		"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do f 0; done; echo ready; : " + mark
	r := a.queue(lines("sh "+script, "sleep 3600000"))
	a.shows(r, "ready\n")
	_, _ = a.InterruptExecution(r.ID())
	if x := a.end(r); x.Status != api.StatusInterrupted || x.State != api.StateKept {
		t.Error(show(x))
	}
	for range 20 { // one look can miss what comes and goes
		for _, p := range procfs.All() {
			if procfs.Runs(p.PID, mark) {
				t.Fatalf("%v of the cell lives", p)
			}
		}
	}
	a.ok(a.cell("print on"))
}

// Nothing that a stopped cell has started goes on, also where the kernel does not wait for
// it and it ignores what can be ignored: the answer comes when it has ended.
func TestStoppedCellLeavesNothing(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("set x 1"))
	early, err := strconv.Atoi(main1(a.cell("spawn 1000")))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * procfs.Tick) // the moment's own precision
	for _, script := range []string{
		"sleep 1000 & echo $!",
		"trap '' INT; sleep 1000 & echo $!",
		"trap '' INT TERM; setsid sh -c 'sleep 1000; sleep 1000' & echo $!",
	} {
		r := a.queue(lines("sh "+script, "sleep 3600000"))
		a.shows(r, "\n")
		x, _ := r.Snapshot()
		pid, err := strconv.Atoi(strings.TrimSpace(x.Stdout))
		if err != nil || !alive(pid) {
			t.Fatalf("%s: %v, %s", script, err, show(x))
		}
		_, _ = a.InterruptExecution(r.ID())
		if x = a.end(r); x.Status != api.StatusInterrupted || x.State != api.StateKept {
			t.Errorf("%s: %s", script, show(x))
		}
		if alive(pid) {
			t.Errorf("%s: outlived its interrupt", script)
		}
		if left := len(a.processes()); left != 2 {
			t.Errorf("%s: %d processes are left, not the kernel and its early child: %v", script, left, a.processes())
		}
		if !alive(early) {
			t.Fatalf("%s: took a child of an earlier cell with it", script)
		}
	}
	a.kept()
}

func TestNotWaitedForByAnother(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("print start"))
	// Children of the agent's own, that some other part of it started and waits for,
	// while orphans are reaped.
	for i := range 20 {
		p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "exit " + strconv.Itoa(i)}, &os.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		a.ok(a.cell("sh (setsid sh -c 'exit 0' &) ; (exit 0 &) ; exit 0"))
		st, err := p.Wait()
		if err != nil || st.ExitCode() != i {
			t.Fatalf("a child's end was taken by another: %v, %v", st, err)
		}
	}
	a.until("orphans are reaped", reaped)
}

func TestStdin(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("set x 1"))
	x := a.cell(lines("input one? ", "input two? "), answers("1", "zwei ☃"))
	a.ok(x)
	if x.Stdout != "one? 1\ntwo? zwei ☃\n" {
		t.Errorf("stdout: %q", x.Stdout)
	}
	// Without answers, and with all used up: an error at once, and the state is kept.
	x = a.cell("input one? ")
	a.is(x, api.StatusError, api.StateKept, "StdinNotImplementedError")
	x = a.cell(lines("input one? ", "input two? ", "print never"), answers("1"))
	a.is(x, api.StatusError, api.StateKept, "StdinNotImplementedError")
	if x.Stdout != "one? 1\ntwo? " {
		t.Errorf("stdout: %q", x.Stdout)
	}
	a.kept()

	r := a.queue(lines("input one? ", "input-hidden two? "), live)
	asked := func(n int) func() bool {
		return func() bool { x, _ := r.Snapshot(); return strings.Count(x.Stdout, "?") == n }
	}
	if err := a.Input(r.ID(), "early"); err == nil { // fine where it asks already
		t.Log("it had asked")
	} else {
		a.until("it asks", asked(1))
		a.until("the answer is taken", func() bool { return a.Input(r.ID(), "early") == nil })
	}
	a.until("it asks again", asked(2))
	a.until("the answer is taken", func() bool { return a.Input(r.ID(), "late") == nil })
	x = a.end(r)
	a.ok(x)
	if x.Stdout != "one? early\ntwo? late\n" {
		t.Errorf("stdout: %q", x.Stdout)
	}
	var passwords []bool
	for _, ev := range a.events(r) {
		if ev.K == api.KindInput {
			passwords = append(passwords, ev.Password)
		}
	}
	if len(passwords) != 2 || passwords[0] || !passwords[1] {
		t.Errorf("input events: %v", passwords)
	}
	if err := a.Input(r.ID(), "more"); code(err) != api.CodeConflict {
		t.Errorf("input to a cell that has ended: %v", err)
	}
	// The wait counts towards the deadline.
	x = a.cell("input one? ", live, timeout(100*time.Millisecond))
	a.is(x, api.StatusTimeout, api.StateKept, "KeyboardInterrupt")
	a.kept()
}

func TestUsage(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("print start"))
	idle := a.cell("sleep 300")
	busy := a.cell("sh i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
	for _, x := range []api.Execution{idle, busy} {
		a.ok(x)
		if x.Usage == nil || x.Usage.CPUMs == nil || x.Usage.PeakRSSBytes == nil {
			t.Fatalf("no usage: %s", show(x))
		}
		if rss := *x.Usage.PeakRSSBytes; rss < 1<<20 || rss > 4<<30 {
			t.Errorf("peak of %d bytes", rss)
		}
	}
	if i, b := *idle.Usage.CPUMs, *busy.Usage.CPUMs; i < 0 || i >= 300 || b < 50 || b > busy.DurationMs+1000 {
		t.Errorf("CPU: idle %d ms, busy %d ms of %d", i, b, busy.DurationMs)
	}
}
