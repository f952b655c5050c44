package front

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
	"github.com/cellard/cellard/protocol/jupyter/kernel/kerneltest"
)

func TestInput(t *testing.T) {
	s := start(t)
	allow := func(c *kernel.Cell) { c.AllowStdin = true }
	got := s.record(context.Background(), &kerneltest.Recorder{Answers: []string{"Ada", "7"}},
		`cat("before\n"); name <- readline("name? "); paste(name, readLines(stdin(), 1))`, allow)
	got.shows(t, `[1] "Ada 7"`)
	if p := got.Prompts(); !slices.Equal(p, []string{"name? ", ""}) {
		t.Errorf("prompts %q", p)
	}
	s.run(`readline("? ")`).fails(t, "StdinNotImplementedError")
	// An interrupt while the question waits, and no late answer.
	ctx, cancel := context.WithCancelCause(context.Background())
	var sink waiting
	sink.asked = func() { cancel(kernel.ErrInterrupted) }
	c := kernel.NewCell(`x <- readline("? ")`, &sink)
	c.AllowStdin = true
	(&ran{&sink.Recorder, s.k.Execute(ctx, c)}).fails(t, "interrupt")
	s.record(context.Background(), &kerneltest.Recorder{Answers: []string{"new"}}, `readline("? ")`, allow).shows(t, `[1] "new"`)
	// A front end that is said to answer, and does not.
	got = s.run(`readline("? ")`, allow)
	if got.fails(t, "EOFError"); !strings.Contains(got.Stream("stderr"), "without answers") {
		t.Errorf("stderr %q", got.Stream("stderr"))
	}
}

// waiting is a front end that never answers.
type waiting struct {
	kerneltest.Recorder
	asked func()
}

func (w *waiting) Input(ctx context.Context, _ string, _ bool) (string, error) {
	w.asked()
	<-ctx.Done()
	return "too late", nil
}

func TestQuestions(t *testing.T) {
	s := start(t)
	s.run("a_long_name <- 1")
	if c, err := s.k.Complete(t.Context(), "x + a_long_n", 12); err != nil || !slices.Equal(c.Matches, []string{"a_long_name"}) || c.Start != 4 || c.End != 12 {
		t.Errorf("%+v %v", c, err)
	}
	if i, err := s.k.Inspect(t.Context(), "median", 6, 0); err != nil || !i.Found || !strings.Contains(fmt.Sprint(i.Data["text/plain"]), "median") {
		t.Errorf("%+v %v", i, err)
	}
	if i, err := s.k.Inspect(t.Context(), "nosuchname", 6, 0); err != nil || i.Found {
		t.Errorf("%+v %v", i, err)
	}
	for code, want := range map[string]string{"1": "complete", "f(": "incomplete", "1 1": "invalid"} {
		if c, err := s.k.IsComplete(t.Context(), code); err != nil || c.Status != want {
			t.Errorf("%s: %+v %v", code, c, err)
		}
	}
	if list, total, err := s.k.Variables(t.Context()); err != nil || total != 1 || len(list) != 1 || list[0].Name != "a_long_name" {
		t.Errorf("%+v %d %v", list, total, err)
	}
	// One that does not end is stopped, with what it has started.
	for _, code := range []string{"repeat {}", `repeat system("sleep 1000")`} {
		s.run(`s <- structure(list(), class = "slow"); registerS3method(".DollarNames", "slow", function(x, pattern) ` + code + `, asNamespace("utils"))`)
		short, stop := context.WithTimeout(t.Context(), time.Second)
		if c, err := s.k.Complete(short, "s$", 2); !errors.Is(err, context.DeadlineExceeded) || len(c.Matches) > 0 {
			t.Errorf("a completion that does not end: %+v %v", c, err)
		}
		stop()
		if left := procfs.Children(os.Getpid()); len(left) != 1 {
			t.Errorf("beside R are left: %+v", left)
		}
		s.run("a_long_name").shows(t, "[1] 1")
	}
	// An answer that came too late is nobody's.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.k.IsComplete(ctx, "f("); !errors.Is(err, context.Canceled) {
		t.Errorf("a question whose time is over: %v", err)
	}
	if c, err := s.k.IsComplete(t.Context(), "1"); err != nil || c.Status != "complete" {
		t.Errorf("%+v %v", c, err)
	}
}
