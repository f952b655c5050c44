package supervisor

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// Each step of a start fails in its own way: the cell and the context are refused, and
// nothing is left.
func TestStartThatFails(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(o *Options) { o.StartTimeout = 4 * time.Second })
	for spec, words := range map[string]string{
		"silent":       "did not answer within",
		"garbage":      "",
		"wrong-type":   "",
		"no-info":      "did not answer within",
		"no-iopub":     "did not answer within",
		"dies":         "ImportError: no module named fake",
		"dies-greeted": "SIGKILL",
		"slow":         "did not answer within",
		"silent-tcp":   "did not answer within",
		"dies-tcp":     "exit code 3",
	} {
		r, err := a.Run(request("print a", language(spec)))
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		defer func() {
			_, refused := a.outcome(r)
			if refused == nil || refused.Code != api.CodeKernelFailed || !strings.Contains(refused.Message, words) || refused.Hint == "" {
				t.Errorf("%s: the cell: %v", spec, refused)
			}
			events := a.events(r)
			if n := len(events); n != 1 || events[0].K != api.KindFailure {
				t.Errorf("%s: events: %+v", spec, events)
			}
			a.until("the context is gone", func() bool { _, err := a.Context(spec); return code(err) == api.CodeNotFound })
			if p := a.processes(); len(a.kernelDirs()) != 0 || len(p) != 0 {
				a.until("nothing is left", func() bool { return len(a.kernelDirs()) == 0 && len(a.processes()) == 0 })
			}
		}()
	}
}

func TestStartIsTriedAgain(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	for range 2 {
		_, err := a.CreateContext(context.Background(), api.ContextRequest{ID: "one", Language: "dies"})
		if code(err) != api.CodeKernelFailed || !strings.Contains(err.Error(), "ImportError") {
			t.Errorf("create: %v", err)
		}
		if len(a.kernelDirs()) != 0 || len(a.processes()) != 0 || len(a.Contexts()) != 0 {
			t.Errorf("left: %v %v %v", a.kernelDirs(), a.processes(), a.Contexts())
		}
	}
	a.context("one") // the id is free
	a.ok(a.cell("print a", in("one")))
	if n, idle := a.Health(); n != 0 || idle <= 0 {
		t.Errorf("health: %d, %v", n, idle)
	}
}

func TestStartsThatWork(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	for _, spec := range []string{"welcome", "later", "fake-tcp", "fake-message"} {
		x := a.cell("print a", language(spec))
		a.ok(x)
		if !x.ContextStarted || x.Generation != 1 || x.Stdout != "a\n" || x.ContextID != spec {
			t.Errorf("%s: %s", spec, show(x))
		}
		c, err := a.Context(spec)
		if err != nil || c.State != api.ContextIdle || c.ProcessID == 0 || c.Kernel.Name != "fake" || c.ExecutionCount != 1 || c.Cwd != a.o.Workspace {
			t.Errorf("%s: %+v, %v", spec, c, err)
		}
	}
	if n := len(a.Contexts()); n != 4 {
		t.Errorf("%d contexts", n)
	}
}

// The time that a kernel takes to start does not count towards the cell's deadline.
func TestStartIsNotTheCellsTime(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	x := a.cell("print a", language("later"), timeout(250*time.Millisecond))
	a.ok(x)
	if x.QueuedMs < 300 {
		t.Errorf("queuedMs is %d", x.QueuedMs)
	}
}

// Whoever waits for a kernel that is still starting is told when the context is
// deleted, or the agent stopped; the start is cut short, and nothing is left.
func TestDeleteAndShutdownWhileStarting(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	created := make(chan error, 2)
	for _, id := range []string{"one", "two"} {
		go func() {
			_, err := a.CreateContext(context.Background(), api.ContextRequest{ID: id, Language: "slow"})
			created <- err
		}()
	}
	a.until("both start", func() bool { return len(a.processes()) == 2 })
	queued := a.queue("print a", in("one"))
	other := a.queue("print a", in("two"))
	if c, _ := a.Context("one"); c.State != api.ContextStarting {
		t.Errorf("state: %+v", c)
	}
	if err := a.Delete(context.Background(), "one"); err != nil {
		t.Errorf("delete: %v", err)
	}
	a.is(a.end(queued), api.StatusInterrupted, api.StateKept, "ContextDeleted")
	if err := <-created; err == nil {
		t.Error("the creation of a deleted context gave none of an error")
	}
	if err := a.Shutdown(context.Background()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-created; err == nil {
		t.Error("the creation that Shutdown ended gave none of an error")
	}
	a.is(a.end(other), api.StatusInterrupted, api.StateKept, "ContextLost")
	if _, err := a.Run(request("print a")); code(err) != api.CodeUnavailable {
		t.Errorf("run after Shutdown: %v", err)
	}
}

func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	a := newAgent(t, nil)
	a.ok(a.cell("print a"))
	minus, at := int64(-1), "x"
	for name, c := range map[string]struct {
		set  with
		code api.Code
	}{
		"negative timeout":  {func(r *api.RunRequest) { r.TimeoutMs = &minus }, api.CodeInvalidRequest},
		"negative wait":     {func(r *api.RunRequest) { r.WaitMs = &minus }, api.CodeInvalidRequest},
		"long key":          {key(strings.Repeat("k", 256)), api.CodeInvalidRequest},
		"NUL in cwd":        {func(r *api.RunRequest) { r.Cwd = "a\x00" }, api.CodeInvalidRequest},
		"bad name":          {func(r *api.RunRequest) { r.Env = map[string]string{"A=B": at} }, api.CodeInvalidRequest},
		"env for one cell":  {func(r *api.RunRequest) { r.Env = map[string]string{"A": at} }, api.CodeUnsupported},
		"cwd for one cell":  {func(r *api.RunRequest) { r.Cwd = "/" }, api.CodeUnsupported},
		"unknown context":   {in("nobody"), api.CodeNotFound},
		"unknown language":  {language("nobody"), api.CodeNotFound},
		"another language":  {func(r *api.RunRequest) { r.Context, r.Language = "fake", "welcome" }, api.CodeInvalidRequest},
		"language's own id": {func(r *api.RunRequest) { r.Context, r.Language = "welcome", "later" }, api.CodeInvalidRequest},
		"generation":        {generation(7), api.CodeGeneration},
		"no such kernel":    {func(r *api.RunRequest) { r.Language = "welcome"; g := 1; r.IfGeneration = &g }, api.CodeGeneration},
	} {
		if _, err := a.Run(request("print a", c.set)); code(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, req := range []api.ContextRequest{
		{ID: "Upper", Language: "fake"}, {ID: "-a", Language: "fake"}, {ID: strings.Repeat("a", 64), Language: "fake"},
		{ID: "a/b", Language: "fake"}, {ID: "a", Language: "fake", Cwd: "/nowhere/at/all"},
		{ID: "a", Language: "fake", Env: map[string]string{"": ""}},
	} {
		if _, err := a.CreateContext(context.Background(), req); code(err) != api.CodeInvalidRequest {
			t.Errorf("%+v: %v", req, err)
		}
	}
	if len(a.Contexts()) != 1 {
		t.Errorf("a refused request made a context: %+v", a.Contexts())
	}
	if n, _ := a.Health(); n != 0 {
		t.Errorf("%d cells are counted as running", n)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(o *Options) { o.Env = append(o.Env, "CELLARD_TOKEN=secret", "PLAIN=a", "LISTEN_FDS=1") })
	a.context("one", func(r *api.ContextRequest) { r.Env = map[string]string{"PLAIN": "b", "MORE": "c"} })
	a.ok(a.cell("print start"))
	for _, c := range []struct{ id, name, want string }{
		{"fake", "CELLARD_TOKEN", ""}, {"fake", "LISTEN_FDS", ""}, {"fake", "PLAIN", "a"}, {"fake", "MORE", ""},
		{"one", "PLAIN", "b"}, {"one", "MORE", "c"},
	} {
		if x := a.cell("env "+c.name, in(c.id)); main1(x) != c.want {
			t.Errorf("%s in %s: %q", c.name, c.id, main1(x))
		}
	}
}

// Text is UTF-8 where the agent's own environment doesn't say otherwise.
func TestLocale(t *testing.T) {
	t.Parallel()
	for _, l := range []struct {
		env        []string
		lang, sees string
	}{
		{nil, "C.UTF-8", "1"},
		{[]string{"LANG=", "LC_ALL="}, "C.UTF-8", "1"},
		{[]string{"LANG=C"}, "C", "2"},
		{[]string{"LC_ALL=C"}, "", "2"},
		{[]string{"LC_CTYPE=C.UTF-8"}, "", "1"},
	} {
		a := newAgent(t, func(o *Options) {
			o.Env = append(slices.DeleteFunc(o.Env, namesLocale), l.env...)
		})
		if x := a.cell("env LANG"); main1(x) != l.lang {
			t.Errorf("%s: LANG is %q", l.env, main1(x))
		}
		if x := a.cell("sh printf ä | wc -m"); strings.TrimSpace(x.Stdout) != l.sees {
			t.Errorf("%s: %q characters", l.env, x.Stdout)
		}
	}
}
