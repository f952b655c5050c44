package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/supervisor"
)

const runHelp = `
cellard run runs one cell in an agent of its own, and prints what it puts out as it
comes, then the text of its value. It exits with 0 only if the cell ran well. The cell
gets no input. What is too large to print lies in a file, which stays: its path is shown.

Usage: cellard run [flags] -c CODE
       cellard run [flags] FILE      (- is stdin)`

// runCell is cellard run.
func runCell(args []string) int {
	fs := newFlags("run")
	agent := newAgentFlags(fs, slog.LevelWarn)
	var req api.RunRequest
	timeout := time.Minute
	fs.StringVar(&req.Code, "c", "", "`CODE` to run")
	fs.StringVar(&req.Language, "language", "python", "`NAME` of a language or of an installed kernelspec")
	fs.Func("timeout", "`TIME` that the cell may take; 0 for any (default 1m)", func(s string) (err error) {
		timeout, err = time.ParseDuration(s)
		return err
	})
	code, ok := parse(fs, args, runHelp, 1)
	if !ok {
		return code
	}
	var err error
	switch {
	case fs.NArg() == 1 && req.Code != "":
		err = errors.New("give code with -c, or a file, not both")
	case fs.NArg() == 1:
		req.Code, err = readCode(fs.Arg(0))
	case req.Code == "":
		err = errors.New("there is no code: give it with -c, or name a file")
	}
	if err == nil && timeout < 0 {
		err = errors.New("--timeout must not be negative")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cellard run: %v\n", err)
		return 2
	}
	ms := timeout.Milliseconds()
	if timeout > 0 && ms == 0 {
		ms = 1
	}
	req.TimeoutMs = &ms

	// The workspace's own place may be that of an agent that serves.
	state, err := os.MkdirTemp("", "cellard-run-")
	if err != nil {
		fmt.Fprintf(os.Stderr, "cellard run: %v\n", err)
		return 1
	}
	shown := &printer{}
	defer func() {
		if !shown.refs { // else their files stay, for whoever reads the paths
			_ = os.RemoveAll(state)
		}
	}()
	if err := os.Chmod(state, 0o755); err != nil { // the cells' user looks there
		fmt.Fprintf(os.Stderr, "cellard run: %v\n", err)
		return 1
	}
	agent.o.StateDir = state
	m, err := agent.manager(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: agent.logLevel})))
	if err != nil {
		fmt.Fprintf(os.Stderr, "cellard run: %v\n", err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err = runIn(ctx, cancel, m, req, shown)
	ctx, cancel = context.WithTimeout(ctx, stopTime)
	defer cancel()
	_ = m.Shutdown(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "cellard run: %v\n", err)
		return 1
	}
	return 0
}

func readCode(file string) (string, error) {
	if file == "-" {
		b, err := io.ReadAll(os.Stdin)
		return string(b), err
	}
	b, err := os.ReadFile(file)
	return string(b), err
}

// runIn runs the cell and prints what comes of it. The first signal interrupts the
// cell, the second gives up.
func runIn(ctx context.Context, giveUp func(), m *supervisor.Manager, req api.RunRequest, shown *printer) error {
	run, err := m.Run(req)
	if err != nil {
		return err
	}
	defer run.Leave(false)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	over := make(chan struct{})
	defer close(over)
	go func() {
		for first := true; ; first = false {
			select {
			case <-signals:
				if !first {
					giveUp()
					return
				}
				_, _ = m.InterruptExecution(run.ID())
			case <-over:
				return
			}
		}
	}()
	events := run.Events(0)
	for {
		b, err := events.Next(ctx)
		if errors.Is(err, io.EOF) {
			return errors.New("the cell ended without saying how")
		}
		if err != nil {
			return err
		}
		for line := range bytes.Lines(b) {
			var ev api.Event
			if err := json.Unmarshal(line, &ev); err != nil {
				return err
			}
			if last, err := shown.show(ev); last {
				return err
			}
		}
	}
}

// printer prints what comes of a cell.
type printer struct {
	refs bool // a ref's path was printed
}

// show prints an event. It reports whether it was the last, and what the cell
// failed with.
func (p *printer) show(ev api.Event) (last bool, err error) {
	switch ev.K {
	case api.KindStdout:
		_, _ = os.Stdout.WriteString(ev.Text)
	case api.KindStderr:
		_, _ = os.Stderr.WriteString(ev.Text)
	case api.KindProgress:
		fmt.Fprintln(os.Stderr, strings.TrimSuffix(ev.Text, "\n"))
	case api.KindGap:
		fmt.Fprintf(os.Stderr, "[%d events were lost: the cell put out too much at once]\n", ev.Missed)
	case api.KindResult:
		p.result(ev)
	case api.KindError:
		if ev.Err.Traceback != "" {
			fmt.Fprintln(os.Stderr, ev.Err.Traceback)
		} else {
			fmt.Fprintf(os.Stderr, "%s: %s\n", ev.Err.Name, ev.Err.Value)
		}
	case api.KindFailure:
		return true, ev.Failure
	case api.KindExecution:
		x := ev.Execution
		switch {
		case x.Status == api.StatusOK:
			return true, nil
		case x.Lost != nil:
			return true, fmt.Errorf("the cell ended as %s: %s", x.Status, x.Lost.Message)
		}
		return true, fmt.Errorf("the cell ended as %s", x.Status)
	}
	return false, nil
}

// showResult prints a result's text, or what there is in place of one.
func (p *printer) result(ev api.Event) {
	var text string
	if json.Unmarshal(ev.Data["text/plain"], &text) == nil {
		fmt.Println(text)
	} else if len(ev.Refs) == 0 {
		for t := range ev.Data {
			fmt.Printf("[%s]\n", t)
		}
	}
	for t, ref := range ev.Refs {
		p.refs = true
		fmt.Printf("[%s, %d bytes: %s]\n", t, ref.Bytes, ref.Path)
	}
}
