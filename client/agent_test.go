package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/client"
	"github.com/cellard/cellard/protocol/api"
)

// Every kind of address leads to the agent.
func TestAddresses(t *testing.T) {
	ctx := bounded(t)
	for _, c := range []struct{ address, token string }{
		{real.Unix, ""},
		{real.Firecracker, ""},
		{real.TCP, real.Token},
		{strings.Replace(real.TCP, "http", "tcp", 1), real.Token},
	} {
		agent := newClient(t, c.address, client.Options{Token: c.token})
		if err := agent.WaitReady(ctx); err != nil {
			t.Errorf("%s: %v", c.address, err)
			continue
		}
		h, err := agent.Health(ctx)
		if err != nil || h.Status != "ok" || h.API != 1 || h.InstanceID == "" {
			t.Errorf("%s: %+v %v", c.address, h, err)
		}
		x, err := agent.Run(ctx, api.RunRequest{Code: "print('out'); 6 * 7"})
		if err != nil || x.Status != api.StatusOK || x.Stdout != "out\n" || string(x.Results[0].Data["text/plain"]) != `"42"` {
			t.Errorf("%s: %+v %v", c.address, x, err)
		}
		if m, err := agent.Metrics(ctx); err != nil || !strings.Contains(m, "cellard_contexts") {
			t.Errorf("%s: %.100s %v", c.address, m, err)
		}
	}
	langs, err := newClient(t, real.Unix, client.Options{}).Languages(ctx)
	if err != nil || !slices.ContainsFunc(langs, func(l api.Language) bool { return l.Name == "python" && l.State == api.LanguageReady }) {
		t.Errorf("%+v %v", langs, err)
	}
}

func TestContexts(t *testing.T) {
	ctx := bounded(t)
	c := newClient(t, real.Firecracker, client.Options{})
	x, err := c.CreateContext(ctx, api.ContextRequest{ID: "mine", Env: map[string]string{"GREETING": "hello"}})
	if err != nil || x.ID != "mine" || x.State != api.ContextIdle || x.Generation != 1 {
		t.Fatalf("%+v %v", x, err)
	}
	if _, err := c.CreateContext(ctx, api.ContextRequest{ID: "mine"}); !errors.Is(err, &api.Error{Code: api.CodeConflict}) {
		t.Errorf("twice: %v", err)
	}
	list, err := c.Contexts(ctx)
	if err != nil || !slices.ContainsFunc(list, func(x api.Context) bool { return x.ID == "mine" }) {
		t.Errorf("%+v %v", list, err)
	}
	r, err := c.Run(ctx, api.RunRequest{Context: "mine", Code: "import os\nvalue = os.environ['GREETING']; value"})
	if err != nil || string(r.Results[0].Data["text/plain"]) != `"'hello'"` {
		t.Errorf("%+v %v", r, err)
	}
	done, err := c.Complete(ctx, "mine", api.CompleteRequest{Code: "os.path.bas"})
	if err != nil || done.Status != "ok" || !slices.ContainsFunc(done.Matches, func(m string) bool { return strings.HasSuffix(m, "basename") }) {
		t.Errorf("%+v %v", done, err)
	}
	doc, err := c.Inspect(ctx, "mine", api.CompleteRequest{Code: "os.path.basename"})
	if err != nil || !doc.Found || !strings.Contains(string(doc.Data["text/plain"]), "final component") {
		t.Errorf("%+v %v", doc, err)
	}
	for code, want := range map[string]string{"1": "complete", "for i in x:": "incomplete", "1 +* 2": "invalid"} {
		if got, err := c.IsComplete(ctx, "mine", code); err != nil || got.Status != want {
			t.Errorf("%q: %+v %v", code, got, err)
		}
	}
	if yes, err := c.Interrupt(ctx, "mine"); err != nil || yes {
		t.Errorf("an idle context was interrupted: %v %v", yes, err)
	}
	again, err := c.Restart(ctx, "mine")
	if err != nil || again.Generation != 2 || again.ProcessID == x.ProcessID {
		t.Errorf("%+v %v", again, err)
	}
	generation := 1
	_, err = c.Run(ctx, api.RunRequest{Context: "mine", Code: "value", IfGeneration: &generation})
	var refusal *api.Error
	if !errors.As(err, &refusal) || refusal.Code != api.CodeGeneration || refusal.Status != 409 || refusal.Message == "" || refusal.Hint == "" {
		t.Errorf("%+v", err)
	}
	if err := c.DeleteContext(ctx, "mine"); err != nil {
		t.Error(err)
	}
	if _, err := c.Context(ctx, "mine"); !errors.Is(err, &api.Error{Code: api.CodeNotFound}) {
		t.Errorf("deleted: %v", err)
	}
	if _, err := c.Fork(ctx, "no-such-context", ""); !errors.Is(err, &api.Error{Code: api.CodeNotFound}) {
		t.Errorf("fork: %v", err)
	}
	if _, err := c.Rollback(ctx, "no-such-context", 1); !errors.Is(err, &api.Error{Code: api.CodeNotFound}) {
		t.Errorf("rollback: %v", err)
	}
}

func TestStreamAndInput(t *testing.T) {
	ctx := bounded(t)
	c := newClient(t, real.Unix, client.Options{})
	s, err := c.Stream(ctx, api.RunRequest{Code: "name = input('who? ')\nprint('hello', name)", Stdin: &api.Stdin{Live: true}})
	if err != nil {
		t.Fatal(err)
	}
	if s.ID() == "" {
		t.Error("no id before the first event")
	}
	var kinds []api.Kind
	seq := int64(0)
	for ev, err := range s.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Seq <= seq {
			t.Errorf("seq %d after %d", ev.Seq, seq)
		}
		seq = ev.Seq
		kinds = append(kinds, ev.K)
		if ev.K == api.KindInput {
			if err := c.Input(ctx, s.ID(), "Ada"); err != nil {
				t.Error(err)
			}
		}
	}
	if kinds[0] != api.KindStart || kinds[len(kinds)-1] != api.KindExecution || slices.Contains(kinds, api.KindPing) {
		t.Errorf("%v", kinds)
	}
	x, err := s.Wait()
	if err != nil || !strings.HasSuffix(x.Stdout, "hello Ada\n") {
		t.Errorf("%+v %v", x, err)
	}
	if err := c.Input(ctx, s.ID(), "again"); !errors.Is(err, &api.Error{Code: api.CodeConflict}) {
		t.Errorf("input that nobody asks for: %v", err)
	}
	// The same events once more, and the rest of them.
	for _, after := range []int64{0, seq - 1, seq} {
		a, err := c.Attach(ctx, s.ID(), after)
		if err != nil {
			t.Fatal(err)
		}
		y, err := a.Wait()
		if err != nil || y.ID != x.ID || y.Stdout != x.Stdout {
			t.Errorf("after %d: %+v %v", after, y, err)
		}
	}
	if y, err := c.Execution(ctx, s.ID()); err != nil || y.Stdout != x.Stdout {
		t.Errorf("%+v %v", y, err)
	}
}

// waitMs gives an Execution that still runs, and an interrupt ends it.
func TestWaitAndInterrupt(t *testing.T) {
	ctx := bounded(t)
	c := newClient(t, real.Unix, client.Options{})
	wait := int64(50)
	x, err := c.Run(ctx, api.RunRequest{Code: "import time\ntime.sleep(1000)", WaitMs: &wait})
	if err != nil || x.Status != api.StatusRunning {
		t.Fatalf("%+v %v", x, err)
	}
	if yes, err := c.InterruptExecution(ctx, x.ID); err != nil || !yes {
		t.Errorf("%v %v", yes, err)
	}
	s, err := c.Attach(ctx, x.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if x, err = s.Wait(); err != nil || x.Status != api.StatusInterrupted {
		t.Errorf("%+v %v", x, err)
	}
	if yes, err := c.InterruptExecution(ctx, x.ID); err != nil || yes {
		t.Errorf("%v %v", yes, err)
	}
}

// A key runs its cell once, whoever sends it how often.
func TestIdempotencyKey(t *testing.T) {
	ctx := bounded(t)
	c := newClient(t, real.Unix, client.Options{})
	var ids []string
	for range 3 {
		x, err := c.Run(ctx, api.RunRequest{Code: "runs = globals().get('runs', 0) + 1; runs", IdempotencyKey: "once"})
		if err != nil || string(x.Results[0].Data["text/plain"]) != `"1"` {
			t.Fatalf("%+v %v", x, err)
		}
		ids = append(ids, x.ID)
	}
	if ids[0] != ids[1] || ids[0] != ids[2] {
		t.Errorf("%v", ids)
	}
	if _, err := c.Run(ctx, api.RunRequest{Code: "2", IdempotencyKey: "once"}); !errors.Is(err, &api.Error{Code: api.CodeConflict}) {
		t.Errorf("with another body: %v", err)
	}
}

// The end of the caller's context ends the wait, and then the cell.
func TestContextEnds(t *testing.T) {
	c := newClient(t, real.Firecracker, client.Options{})
	ctx, cancel := context.WithCancelCause(bounded(t))
	defer cancel(nil)
	s, err := c.Stream(ctx, api.RunRequest{Code: "import time\nprint('in', flush=True)\ntime.sleep(1000)"})
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("no longer wanted")
	for ev, err := range s.Events() {
		if ev.K == api.KindStdout {
			cancel(why)
		}
		if err != nil && !errors.Is(err, why) {
			t.Errorf("ended with %v", err)
		}
	}
	if _, err := s.Wait(); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	x := &api.Execution{Status: api.StatusRunning}
	for x.Status == api.StatusRunning { // an attach would count as a reader
		if x, err = c.Execution(bounded(t), s.ID()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if x.Status != api.StatusInterrupted {
		t.Errorf("%+v", x)
	}
}

func TestResults(t *testing.T) {
	ctx := bounded(t)
	c := newClient(t, real.Firecracker, client.Options{})
	x, err := c.Run(ctx, api.RunRequest{Code: "from IPython.display import display\ndisplay({'image/png': __import__('base64').b64encode(bytes(300_000)).decode()}, raw=True)\nprint('x' * 3_000_000)"})
	if err != nil || len(x.Results) != 1 || len(x.Overflow) != 1 {
		b, _ := json.Marshal(x)
		t.Fatalf("%.500s %v", b, err)
	}
	ref := x.Results[0].Refs["image/png"]
	f, err := c.Result(ctx, x.ContextID, ref)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err != nil || len(b) != 300_000 || f.MIME != "image/png" || f.Size != 300_000 {
		t.Errorf("%d bytes, %s, %v", len(b), f.MIME, err)
	}
	f.Close()
	if f, err = c.OverflowFile(ctx, x.ContextID, x.Overflow[0]); err != nil {
		t.Fatal(err)
	}
	if b, err = io.ReadAll(f); err != nil || string(b) != strings.Repeat("x", 3_000_000)+"\n" {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	f.Close()
	wrong := ref
	wrong.SHA256 = strings.Repeat("0", 64)
	if _, err := c.Result(ctx, x.ContextID, wrong); err == nil || !strings.Contains(err.Error(), "no longer what the ref names") {
		t.Errorf("another hash: %v", err)
	}
	wrong.Path += "x"
	if _, err := c.Result(ctx, x.ContextID, wrong); !errors.Is(err, &api.Error{Code: api.CodeNotFound}) {
		t.Errorf("another path: %v", err)
	}
	// A break in the middle costs nothing.
	if f, err = c.Result(ctx, x.ContextID, ref); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(f, b[:1000]); err != nil {
		t.Fatal(err)
	}
	real.VM.Cut()
	if n, err := io.Copy(io.Discard, f); err != nil || n != 299_000 {
		t.Errorf("after a break: %d bytes, %v", n, err)
	}
	f.Close()
}

// A stream goes on after each way to break: cut, forgotten by a VM that was restored,
// paused for a while. Nothing is missing and nothing comes twice.
func TestStreamSurvives(t *testing.T) {
	ctx := bounded(t)
	c := newClient(t, real.Firecracker, client.Options{Silence: 2 * time.Second, AnswerTimeout: 2 * time.Second, Retries: 20})
	const code = "import time\nfor i in range(400):\n  print(i, flush=True)\n  time.sleep(0.01)"
	s, err := c.Stream(ctx, api.RunRequest{Code: code})
	if err != nil {
		t.Fatal(err)
	}
	before := real.VM.Calls()
	var text strings.Builder
	done := 0
	for ev, err := range s.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.K == api.KindStdout {
			text.WriteString(ev.Text)
		}
		switch n := strings.Count(text.String(), "\n"); {
		case done == 0 && n > 50:
			real.VM.Cut()
			done++
		case done == 1 && n > 100:
			real.VM.Forget()
			done++
		case done == 2 && n > 200:
			real.VM.Pause()
			time.AfterFunc(4*time.Second, real.VM.Resume)
			done++
		}
	}
	x, err := s.Wait()
	if err != nil || x.Status != api.StatusOK || text.String() != x.Stdout || strings.Count(x.Stdout, "\n") != 400 {
		t.Errorf("%d lines came, of %+v, %v", strings.Count(text.String(), "\n"), x, err)
	}
	if done != 3 || real.VM.Calls()-before < 3 {
		t.Errorf("%d breaks, %d more connections", done, real.VM.Calls()-before)
	}
}

// A paused machine never says that it is gone: all of it ends in time, by name.
func TestPausedMachine(t *testing.T) {
	ctx := bounded(t)
	c := newClient(t, real.Firecracker, client.Options{Silence: 300 * time.Millisecond, AnswerTimeout: 300 * time.Millisecond,
		DialTimeout: 300 * time.Millisecond, StartTimeout: 300 * time.Millisecond, Retries: 1})
	if _, err := c.Health(ctx); err != nil {
		t.Fatal(err)
	}
	s, err := c.Stream(ctx, api.RunRequest{Code: "import time\nprint('in', flush=True)\ntime.sleep(1000)"})
	if err != nil {
		t.Fatal(err)
	}
	for ev, err := range s.Events() {
		if ev.K == api.KindStdout {
			real.VM.Pause()
		}
		if err != nil && !errors.Is(err, client.ErrSilent) {
			t.Errorf("the stream: %v", err)
		}
	}
	if _, err := s.Wait(); !errors.Is(err, client.ErrSilent) {
		t.Errorf("the stream ended with %v", err)
	}
	_, health := c.Health(ctx)
	_, run := c.Run(ctx, api.RunRequest{Code: "1", IdempotencyKey: "paused"})
	_, create := c.CreateContext(ctx, api.ContextRequest{})
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	ready := c.WaitReady(short)
	real.VM.Resume()
	for what, err := range map[string]error{"health": health, "run": run, "create": create} {
		if !errors.Is(err, client.ErrSilent) {
			t.Errorf("%s ended with %v", what, err)
		}
	}
	if ready == nil || !strings.Contains(ready.Error(), "not ready") {
		t.Errorf("ready: %v", ready)
	}
	if err := c.WaitReady(ctx); err != nil {
		t.Error(err)
	}
	if _, err := c.InterruptExecution(ctx, s.ID()); err != nil {
		t.Error(err)
	}
}

// Connections are kept and used again.
func TestConnectionsAreReused(t *testing.T) {
	ctx := bounded(t)
	c := newClient(t, real.Firecracker, client.Options{})
	before := real.VM.Calls()
	for range 20 {
		if x, err := c.Run(ctx, api.RunRequest{Code: "1"}); err != nil || x.Status != api.StatusOK {
			t.Fatalf("%+v %v", x, err)
		}
		if _, err := c.Health(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := real.VM.Calls() - before; n > 3 {
		t.Errorf("%d connections for 40 requests", n)
	}
}
