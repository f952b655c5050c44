package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
