package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/protocol/api"
)

// restart and delete end the running cell as lost and the waiting ones without having
// run.
func TestRestartAndDelete(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	for i, c := range []struct {
		do     func() error
		reason api.LostReason
		queued string
	}{
		{func() error { _, err := a.Restart(context.Background(), "one"); return err }, api.LostRestart, "ContextRestarted"},
		{func() error { return a.Delete(context.Background(), "one") }, api.LostDeleted, "ContextDeleted"},
	} {
		if i == 0 {
			a.context("one")
		}
		a.cell("set x 1", in("one"))
		r := a.queue(lines("print a", "sleep 3600000"), in("one"))
		queued := []*Run{a.queue("print never", in("one")), a.queue("print never", in("one"))}
		a.shows(r, "a")
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		x := a.end(r)
		a.lostBy(x, c.reason, "", -1)
		if x.Stdout != "a\n" {
			t.Errorf("%s: output %q", c.reason, x.Stdout)
		}
		checkEvents(t, a.events(r))
		for _, q := range queued {
			y := a.end(q)
			a.is(y, api.StatusInterrupted, api.StateLost, c.queued)
			if y.Stdout != "" {
				t.Errorf("%s: a waiting cell ran: %s", c.reason, show(y))
			}
		}
		if c.reason == api.LostRestart {
			y := a.cell("get x", in("one"))
			a.is(y, api.StatusError, api.StateKept, "NameError")
			if y.Generation != 2 || y.ContextStarted {
				t.Errorf("after a restart: %s", show(y))
			}
		}
	}
	if _, err := a.Context("one"); code(err) != api.CodeNotFound {
		t.Errorf("a deleted context: %v", err)
	}
	if err := a.Delete(context.Background(), "one"); code(err) != api.CodeNotFound {
		t.Errorf("deleted twice: %v", err)
	}
	if _, err := a.Restart(context.Background(), "one"); code(err) != api.CodeNotFound {
		t.Errorf("restart of a deleted one: %v", err)
	}
	if _, err := a.Run(request("print a", in("one"))); code(err) != api.CodeNotFound {
		t.Errorf("run in a deleted context: %v", err)
	}
}

// A deleted id is free at once, and the new context has nothing of the old one.
func TestDeleteAndCreate(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(o *Options) { o.Limits = execution.Limits{Inline: 10} })
	for range 3 {
		if c := a.context("one"); c.Generation != 1 || c.ExecutionCount != 0 {
			t.Errorf("a new context: %+v", c)
		}
		x := a.cell(lines("set x 1", "result "+strings.Repeat("long ", 10)), in("one"))
		ref := x.Results[0].Refs["text/plain"]
		f, err := a.OpenResult("one", filepath.Base(ref.Path))
		if err != nil {
			t.Fatalf("%v: %s", err, show(x))
		}
		f.Close()
		if _, err := a.CreateContext(context.Background(), api.ContextRequest{ID: "one", Language: "fake"}); code(err) != api.CodeConflict {
			t.Errorf("an id in use: %v", err)
		}
		r := a.queue("sleep 3600000", in("one"))
		if err := a.Delete(context.Background(), "one"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(ref.Path); err == nil {
			t.Error("a deleted context's files are left")
		}
		if x := a.end(r); x.Status != api.StatusLost && x.Status != api.StatusInterrupted {
			t.Errorf("a cell of a deleted context: %s", show(x))
		}
	}
	// The same, with everything at once: each creation gives one context or a conflict.
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 3 {
				_, err := a.CreateContext(context.Background(), api.ContextRequest{ID: "one", Language: "fake"})
				if c := code(err); err != nil && c != api.CodeConflict && c != api.CodeNotFound {
					t.Errorf("create: %v", err)
				}
				if err := a.Delete(context.Background(), "one"); err != nil && code(err) != api.CodeNotFound {
					t.Errorf("delete: %v", err)
				}
			}
		}()
	}
	wg.Wait()
	a.context("one")
}

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

func TestAsk(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.context("one")
	ctx := context.Background()
	for msgType, want := range map[string]string{"complete_request": "print-nothing", "inspect_request": "print TEXT", "is_complete_request": "complete"} {
		b, err := a.Ask(ctx, "one", msgType, api.CompleteRequest{Code: "pr"})
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %s, %v", msgType, b, err)
		}
	}
	far := 3
	if _, err := a.Ask(ctx, "one", "complete_request", api.CompleteRequest{Code: "pr", Cursor: &far}); code(err) != api.CodeInvalidRequest {
		t.Errorf("a cursor outside: %v", err)
	}
	if _, err := a.Ask(ctx, "nobody", "complete_request", api.CompleteRequest{}); code(err) != api.CodeNotFound {
		t.Errorf("no context: %v", err)
	}
	// The kernel goes while it is asked: an answer that there is none, and no hang.
	r := a.queue(lines("print a", "sleep 300", "exit 0"), in("one"))
	a.shows(r, "a")
	if b, err := a.Ask(ctx, "one", "complete_request", api.CompleteRequest{Code: "pr"}); code(err) != api.CodeUnavailable {
		t.Errorf("asked of a kernel that dies: %s, %v", b, err)
	}
	a.end(r)
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, code string }{{"well", "sleep 3600000"}, {"deaf", lines("!deaf", "sleep 3600000")}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, func(o *Options) { o.ShutdownGrace = time.Second })
			a.ok(a.cell("sh sleep 1000 &"))
			a.context("idle")
			r := a.queue(lines("print a", c.code))
			queued := a.queue("print never")
			a.shows(r, "a")
			if err := a.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			x := a.end(r)
			a.lostBy(x, api.LostShutdown, "", -1)
			if x.Stdout != "a\n" {
				t.Errorf("output: %q", x.Stdout)
			}
			checkEvents(t, a.events(r)) // still there for the last readers
			y := a.end(queued)
			a.is(y, api.StatusInterrupted, api.StateLost, "ContextLost")
			if left := a.processes(); len(left) != 0 {
				t.Errorf("processes left: %+v", left)
			}
			if _, err := os.Stat(a.o.RuntimeDir); !os.IsNotExist(err) {
				t.Errorf("the runtime directory is left: %v", err)
			}
			if _, err := a.CreateContext(context.Background(), api.ContextRequest{Language: "fake"}); code(err) != api.CodeUnavailable {
				t.Errorf("create after Shutdown: %v", err)
			}
		})
	}
	t.Run("at once", func(t *testing.T) {
		t.Parallel()
		a := newAgent(t, func(o *Options) { o.ShutdownGrace = time.Hour })
		r := a.queue(lines("print a", "!deaf", "sleep 3600000"))
		a.shows(r, "a")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := a.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		a.lostBy(a.end(r), api.LostShutdown, "", -1)
	})
}

// Many contexts, cells, interrupts and deaths at once: every execution ends, once,
// with its own output.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			id := fmt.Sprintf("c%d", i)
			if _, err := a.CreateContext(context.Background(), api.ContextRequest{ID: id, Language: "fake"}); err != nil {
				t.Error(err)
				return
			}
			var runs []*Run
			for j := range 12 {
				text := fmt.Sprintf("%s-%d", id, j)
				source := lines("print "+text, "sleep 5")
				if j == 6 {
					source = lines("print "+text, "exit 0")
				}
				r, err := a.Run(request(source, in(id)))
				if err != nil {
					t.Error(err)
					return
				}
				if j%4 == 3 {
					_, _ = a.InterruptExecution(r.ID())
				}
				runs = append(runs, r)
			}
			for j, r := range runs {
				select {
				case <-r.Done():
				case <-time.After(patience):
					t.Errorf("%s-%d did not end", id, j)
					return
				}
				x, refused := r.Snapshot()
				if own := fmt.Sprintf("%s-%d\n", id, j); refused != nil || x.Stdout != "" && x.Stdout != own || x.Status == api.StatusOK && x.Stdout != own {
					t.Errorf("%s-%d: %v, %s", id, j, refused, show(x))
				}
			}
		}()
	}
	wg.Wait()
	if n, _ := a.Health(); n != 0 {
		t.Errorf("%d cells are counted as running", n)
	}
}

// A language's name is its own context's id, in whatever case it is asked for.
func TestLanguagesOwnContexts(t *testing.T) {
	a := newAgent(t, nil)
	x := a.cell("set a 1", func(r *api.RunRequest) { r.Context, r.Language = "", "FAKE" })
	if x.ContextID != "fake" || x.Language != "fake" {
		t.Fatalf("context %s, language %s", x.ContextID, x.Language)
	}
	a.ok(a.cell("get a", func(r *api.RunRequest) { r.Context, r.Language = "fake", "Fake" }))
	for _, req := range []api.ContextRequest{{ID: "bash", Language: "fake"}, {ID: "fake-message", Language: "fake"}} {
		if _, err := a.CreateContext(t.Context(), req); code(err) != api.CodeInvalidRequest {
			t.Errorf("%+v: %v", req, err)
		}
	}
	if got := a.context("fake-message", func(r *api.ContextRequest) { r.Language = "" }).Language; got != "fake-message" {
		t.Errorf("a context of a language's name is %s", got)
	}
}
