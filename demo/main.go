// Command demo starts a real agent and has a conversation with it, cell by cell,
// over its Unix socket by plain HTTP, as a host's daemon would: a data set is
// loaded, looked at and charted, a mistake is made, a deadline passes. It prints
// what a person would want to see, leaves the charts as files, and fails if
// anything is not as the API promises.
//
// talk.go is the conversation, agent.go the agent and its API, print.go what is
// seen of it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	binary := flag.String("agent", "bin/cellard", "the agent's `binary`")
	python := flag.String("python", "python3", "the `interpreter` with ipykernel, pandas, matplotlib and palmerpenguins")
	out := flag.String("out", "demo-out", "the `directory` for the charts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demo(ctx, *binary, *python, *out); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context, binary, python, out string) (err error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	a, err := start(ctx, binary, python)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := a.stop(); err == nil {
			err = stopErr
		}
	}()
	p := newPrinter(os.Stdout)
	if err := a.greet(ctx, p); err != nil {
		return err
	}
	t := &talk{agent: a, printer: p, out: out}
	for i, c := range conversation {
		if err := t.say(ctx, i+1, c); err != nil {
			return fmt.Errorf("cell %d, %s: %w", i+1, c.title, err)
		}
	}
	p.rule("Done")
	fmt.Fprintf(p.w, "%d cells on one kernel. The charts:\n", len(conversation))
	for _, f := range t.charts {
		if abs, err := filepath.Abs(f); err == nil {
			f = abs
		}
		fmt.Fprintf(p.w, "  %s\n", f)
	}
	return nil
}
