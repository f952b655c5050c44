package supervisor

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/protocol/api"
)

func TestIfGeneration(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("set x 1"))
	a.ok(a.cell("get x", generation(1)))
	if _, err := a.Run(request("get x", generation(2))); code(err) != api.CodeGeneration {
		t.Errorf("another generation: %v", err)
	}
	// It holds when the request comes and no more when its turn does: the kernel dies
	// between, unseen while the context's goroutine is held.
	c, _ := a.Context("fake")
	var late *Run
	a.session("fake").do(func() {
		_ = unix.Kill(c.ProcessID, unix.SIGKILL)
		a.until("the kernel has ended", func() bool { return !alive(c.ProcessID) })
		late = a.queue("print ran", generation(1))
	})
	if x, refused := a.outcome(late); refused == nil || refused.Code != api.CodeGeneration {
		t.Errorf("ran on another generation: %s, %v", show(x), refused)
	}
	x := a.cell("print b")
	if x.Status != api.StatusOK || x.State != api.StateLost || x.Generation != 2 || !x.ContextStarted {
		t.Errorf("the next cell: %s", show(x))
	}
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("print start"))
	// Many at once: it runs once.
	var wg sync.WaitGroup
	ids := make([]string, 10)
	existing := make([]bool, 10)
	for i := range ids {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r, err := a.Run(request(lines("print ran", "sleep 100"), key("one")))
			if err != nil {
				t.Error(err)
				return
			}
			<-r.Done()
			ids[i], existing[i] = r.ID(), r.Existing
			r.Leave(true)
		}()
	}
	wg.Wait()
	first := 0
	for i := range ids {
		if ids[i] != ids[0] {
			t.Errorf("executions %s and %s of one key", ids[i], ids[0])
		}
		if !existing[i] {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d of the requests began it", first)
	}
	if c, _ := a.Context("fake"); c.ExecutionCount != 2 {
		t.Errorf("it ran %d times", c.ExecutionCount-1)
	}
	// The way in which the answer is wanted is no part of the body.
	r, err := a.Run(request(lines("print ran", "sleep 100"), key("one"), func(r *api.RunRequest) { ms := int64(1); r.WaitMs, r.Stream = &ms, true }))
	if err != nil || r.ID() != ids[0] || !r.Existing {
		t.Errorf("a second request with the key: %v", err)
	}
	for name, set := range map[string]with{
		"code":    func(r *api.RunRequest) { r.Code = "print other" },
		"timeout": timeout(time.Hour),
		"context": in("other"),
	} {
		if _, err := a.Run(request(lines("print ran", "sleep 100"), key("one"), set)); code(err) != api.CodeConflict {
			t.Errorf("another %s: %v", name, err)
		}
	}
	// A refusal ran no code: the key may be used again, at once.
	for range 3 {
		r := a.queue("print a", language("dies"), key("two"))
		if _, refused := a.outcome(r); refused == nil || refused.Code != api.CodeKernelFailed || r.Existing {
			t.Errorf("a kernel that does not start: %v, existing %v", refused, r.Existing)
		}
	}
	// One that was taken out of the queue stays what it is.
	gate := a.queue("sleep 3600000")
	q := a.queue("print never", key("three"))
	_, _ = a.InterruptExecution(q.ID())
	a.is(a.end(q), api.StatusInterrupted, api.StateKept, "Interrupted")
	again := a.queue("print never", key("three"))
	if again.ID() != q.ID() {
		t.Error("an interrupted cell's key ran again")
	}
	_, _ = a.InterruptExecution(gate.ID())
	a.end(gate)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(o *Options) { o.MaxQueue, o.MaxContexts = 2, 2 })
	a.ok(a.cell("print start"))
	r := a.queue(lines("print a", "sleep 3600000"))
	a.shows(r, "a")
	queued := []*Run{a.queue("print b"), a.queue("print c")}
	for _, set := range []with{func(*api.RunRequest) {}, key("k")} {
		if _, err := a.Run(request("print d", set)); code(err) != api.CodeBusy {
			t.Errorf("a third waiting cell: %v", err)
		}
	}
	if n, _ := a.Health(); n != 3 {
		t.Errorf("%d cells run or wait", n)
	}
	a.context("two")
	if _, err := a.CreateContext(context.Background(), api.ContextRequest{ID: "three", Language: "fake"}); code(err) != api.CodeBusy {
		t.Errorf("a third context: %v", err)
	}
	_, _ = a.Interrupt(context.Background(), "fake")
	for i, q := range queued {
		if x := a.end(q); x.Stdout != string("bc"[i])+"\n" || x.Status != api.StatusOK {
			t.Errorf("a cell that waited: %s", show(x))
		}
	}
	a.ok(a.cell("print d", key("k"))) // the refused one ran no code
	if err := a.Delete(context.Background(), "two"); err != nil {
		t.Error(err)
	}
	a.context("three")
}

func TestDisconnect(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(o *Options) { o.DisconnectGrace = 200 * time.Millisecond })
	a.ok(a.cell("set x 1"))
	long := lines("print a", "sleep 3600000")

	r := a.queue(long)
	a.shows(r, "a")
	r.Leave(true) // gone: interrupted
	a.is(a.end(r), api.StatusInterrupted, api.StateKept, "KeyboardInterrupt")

	r = a.queue(long)
	waits := a.queue("print never")
	a.shows(r, "a")
	waits.Leave(true) // gone while it waits: never runs
	x := a.end(waits)
	a.is(x, api.StatusInterrupted, api.StateKept, "Interrupted")
	if x.Stdout != "" {
		t.Errorf("it ran: %s", show(x))
	}
	leave := r.Attach() // another reader is there
	r.Leave(true)
	time.Sleep(3 * a.o.DisconnectGrace)
	if x, _ := r.Snapshot(); x.Status != api.StatusRunning {
		t.Errorf("interrupted though a reader was there: %s", show(x))
	}
	leave(true)
	a.is(a.end(r), api.StatusInterrupted, api.StateKept, "KeyboardInterrupt")

	r = a.queue(long)
	a.shows(r, "a")
	r.Leave(true)
	leave = r.Attach() // back within the grace
	time.Sleep(3 * a.o.DisconnectGrace)
	if x, _ := r.Snapshot(); x.Status != api.StatusRunning {
		t.Errorf("interrupted though the reader came back: %s", show(x))
	}
	leave(true)
	a.end(r)

	for name, run := range map[string]func() *Run{
		"its wait was over":  func() *Run { r := a.queue(long); a.shows(r, "a"); r.Leave(false); return r },
		"a key":              func() *Run { r := a.queue(long, key("k")); a.shows(r, "a"); r.Leave(true); return r },
		"asked to go on":     func() *Run { r := a.queue(long, interruptGone(false)); a.shows(r, "a"); r.Leave(true); return r },
		"came back and left": func() *Run { r := a.queue(long); a.shows(r, "a"); r.Leave(false); r.Attach()(true); return r },
	} {
		r := run()
		time.Sleep(3 * a.o.DisconnectGrace)
		if x, _ := r.Snapshot(); x.Status != api.StatusRunning {
			t.Errorf("%s: interrupted: %s", name, show(x))
		}
		_, _ = a.InterruptExecution(r.ID())
		a.end(r)
	}
	a.kept()
}

func TestRetention(t *testing.T) {
	t.Parallel()
	gone := func(a *agent, r *Run) func() bool {
		return func() bool { _, err := a.Execution(r.ID()); return code(err) == api.CodeNotFound }
	}
	t.Run("time", func(t *testing.T) {
		t.Parallel()
		a := newAgent(t, func(o *Options) { o.Retention = 2 * time.Second })
		r := a.queue("print a", key("k"))
		a.ok(a.end(r))
		r.Leave(false)
		if e, err := a.Execution(r.ID()); err != nil || e.ID() != r.ID() {
			t.Errorf("it is not kept: %v", err)
		}
		a.until("it is forgotten", gone(a, r))
		if again := a.queue("print a", key("k")); again.Existing {
			t.Error("its key was not forgotten with it")
		}
	})
	t.Run("bytes", func(t *testing.T) {
		t.Parallel()
		a := newAgent(t, func(o *Options) { o.RetentionBytes = 100 << 10 })
		first := a.queue(lines("set x 1", "!flood 5000"), key("k"))
		whole := a.end(first)
		a.ok(whole)
		if _, err := a.Execution(first.ID()); err != nil {
			t.Error("the newest is not kept")
		}
		second := a.queue("!flood 5000")
		a.ok(a.end(second))
		// A reader that is slow gets all of it, however much others put out meanwhile.
		a.cell("!flood 5000")
		if x, refused := first.Snapshot(); refused != nil || !reflect.DeepEqual(x, whole) {
			t.Errorf("under its reader: %v %.200s", refused, show(x))
		}
		checkEvents(t, a.events(first))
		first.Leave(false)
		second.Leave(false)
		second = a.queue("!flood 5000")
		a.ok(a.end(second))
		a.until("the older one is forgotten", gone(a, first))
		if _, refused := first.Snapshot(); refused == nil || refused.Code != api.CodeGone {
			t.Errorf("a snapshot of what is forgotten: %v", refused)
		}
		if _, err := a.Execution(second.ID()); err != nil {
			t.Error("the newest is not kept")
		}
		// Its key is not: the code must not run again.
		if _, err := a.Run(request(lines("set x 1", "!flood 5000"), key("k"))); code(err) != api.CodeGone {
			t.Errorf("the key of an execution that the budget took: %v", err)
		}
		if _, err := a.Run(request("other", key("k"))); code(err) != api.CodeConflict {
			t.Errorf("and another body: %v", err)
		}
	})
}

// The code of the cells that wait or run is bounded together; one alone is always taken.
func TestMaxCode(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(o *Options) { o.MaxCode = 1000 })
	long := func(line string, n int) string { return line + strings.Repeat("\nprint", n) }
	for range 2 {
		r := a.queue(long("sleep 3600000", 100))
		if _, err := a.Run(request(long("print a", 100))); code(err) != api.CodeBusy {
			t.Errorf("code over the bound: %v", err)
		}
		short := a.queue("print a")
		if did, err := a.InterruptExecution(r.ID()); err != nil || !did {
			t.Errorf("interrupt: %v %v", did, err)
		}
		a.end(r)
		a.ok(a.end(short))
	}
	a.ok(a.cell(long("print a", 200)))
}
