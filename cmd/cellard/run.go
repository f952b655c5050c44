package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cellard/cellard/notebook"
	"github.com/cellard/cellard/protocol/api"
)

const runHelp = `
cellard run runs cells, one after the other in one context, and shows what they put out as
it comes: tables as tables, images in a terminal that can, or saved by --out-dir. Without
--agent it runs them in an agent of its own. It stops at the first cell that is not ok, and
exits with 0 only if all were: 1 the code raised, 2 the command is wrong, 3 the agent
refused or could not be reached, 4 timeout, 5 lost, 130 interrupted. Ctrl-C interrupts the
cell, once more leaves; SIGTERM and SIGHUP leave at once, with 143 and 129.

A file's language is told by the ending of its name, else by its #! line; without either it
is Python. One of another ending or program needs --language.

A notebook is run to -o, which is saved after each cell. Its cells' tags count:
skip-execution, and raises-exception, which lets a cell fail. The state of its widgets
(metadata.widgets) is not stored.

Usage: cellard run [flags] [-c CODE | FILE | -] ...      (- is stdin)

  cellard run -c 'x = 6 * 7' -c 'print(x)'
  cellard run --language r analysis.R --out-dir charts
  cellard run NOTEBOOK.ipynb -o OUT.ipynb
  cellard run --agent unix:///run/cellard.sock --context analysis cell.py`

// runFlags are what cellard run was asked for.
type runFlags struct {
	call    *callFlags
	sources []source
	req     api.RunRequest
	json    bool
	outDir  string

	notebook     *notebook.Notebook // in place of sources
	notebookOut  string
	allowErrors  bool
	recordTiming bool
}

// runCell is cellard run.
func runCell(args []string) int {
	fs := newFlags("run")
	f := &runFlags{call: newCallFlags(fs, true)}
	var timeout = time.Minute
	fs.Func("c", "`CODE` to run; may be repeated", func(s string) error {
		f.sources = append(f.sources, source{"-c", s})
		return nil
	})
	fs.StringVar(&f.req.Language, "language", "", "`NAME` of a language or of an installed kernelspec (default: by the ending of the file's name or by its #! line, else python)")
	fs.StringVar(&f.req.Context, "context", "", "`ID` of the context of --agent to run in (default: the language's own)")
	fs.Func("timeout", "`TIME` that a cell may take; 0 for any (default 1m)", func(s string) (err error) {
		if timeout, err = parseTime(s); err == nil && timeout < 0 {
			err = errors.New("must not be negative")
		}
		return err
	})
	envVar(fs, &f.req.Env, "`NAME=VALUE` for the cells' environment; may be repeated")
	fs.BoolVar(&f.json, "json", false, "print each Execution as a line of JSON, and nothing else")
	fs.StringVar(&f.outDir, "out-dir", "", "`DIR` to save images and files in that cells show, and what is large")
	fs.StringVar(&f.notebookOut, "o", "", "`FILE` to write the notebook to that was run; it may be the same")
	fs.BoolVar(&f.allowErrors, "allow-errors", false, "go on in a notebook after a cell that fails")
	fs.BoolVar(&f.recordTiming, "record-timing", true, "note in a notebook's cells when they ran, as nbclient does")
	code, ok := parseMixed(fs, args, runHelp, func(arg string) error {
		if strings.HasSuffix(arg, ".ipynb") {
			if f.notebook != nil {
				return errors.New("one notebook at a time")
			}
			var err error
			f.notebook, err = notebook.Read(arg)
			return err
		}
		s := source{name: arg}
		var err error
		s.code, err = readCode(arg)
		f.sources = append(f.sources, s)
		return err
	})
	if !ok {
		return code
	}
	if nb := f.notebook; nb != nil {
		if f.notebookOut == "" || len(f.sources) > 0 || f.json || f.outDir != "" {
			fmt.Fprintln(os.Stderr, "cellard run: a notebook is run alone, with -o for the file to write it to, and without --json and --out-dir")
			return exitUsage
		}
		var err error
		if f.notebookOut, err = outputFile(f.notebookOut); err != nil {
			fmt.Fprintf(os.Stderr, "cellard run: %v\n", err)
			return exitUsage
		}
		if f.req.Language == "" && f.req.Context == "" {
			f.req.Language = nb.Language()
		}
	} else if f.notebookOut != "" || f.allowErrors {
		fmt.Fprintln(os.Stderr, "cellard run: -o and --allow-errors are for a notebook; name one")
		return exitUsage
	} else if len(f.sources) == 0 {
		fmt.Fprintln(os.Stderr, "cellard run: there is no code: give it with -c, or name a file, or - for stdin")
		return exitUsage
	}
	if err := f.takeLanguage(); err != nil {
		fmt.Fprintf(os.Stderr, "cellard run: %v\n", err)
		return exitUsage
	}
	f.req.TimeoutMs = milliseconds(timeout)
	return f.run()
}

// envVar is the flag --env.
func envVar(fs *flagSet, env *map[string]string, usage string) {
	fs.Func("env", usage, func(s string) error {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return errors.New("want NAME=VALUE")
		}
		if *env == nil {
			*env = map[string]string{}
		}
		(*env)[k] = v
		return nil
	})
}

// milliseconds rounds up, so that little is not none.
func milliseconds(d time.Duration) *int64 {
	ms := (d + time.Millisecond - 1).Milliseconds()
	return &ms
}

func (f *runFlags) run() int {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	c, err := f.call.open(ctx)
	if err != nil {
		return fail("run", err)
	}
	defer c.Close()
	running := watchSignals(ctx, c, leave)
	return running.code(f.runIn(ctx, c, running))
}

func (f *runFlags) runIn(ctx context.Context, c *agentCall, running *current) int {
	if err := c.ready(ctx, f.req.Context, f.req.Language); err != nil {
		return fail("run", err)
	}
	if err := f.fits(ctx, c); err != nil {
		return fail("run", err)
	}
	p := newPrinter(c, f.outDir)
	p.quiet = f.json
	if f.notebook != nil {
		code, err := f.runNotebook(ctx, p, running)
		if err != nil {
			return fail("run", err)
		}
		return code
	}
	// A cell asks who is there, or what is piped in; cells themselves may come that way.
	p.ask = !f.json && !slices.ContainsFunc(f.sources, func(s source) bool { return s.name == "-" })
	for _, s := range f.sources {
		req := f.req
		req.Code = s.code
		x, err := p.run(ctx, req, running)
		if err != nil {
			return fail("run", err)
		}
		if f.json {
			if code := tellJSON("run", x); code != exitOK {
				return code
			}
		} else {
			p.ending("run", x)
		}
		if x.Status != api.StatusOK {
			return exitOf(x.Status)
		}
	}
	return exitOK
}

// current is the execution that signals are for; it holds an empty string between two.
type current struct {
	id   atomic.Value
	left atomic.Int32 // the signal that the command was left by; 0: none
}

func (r *current) set(id string) { r.id.Store(id) }

// code is the command's exit code: a shell's for a signal, where one has ended it.
func (r *current) code(otherwise int) int {
	if s := r.left.Load(); s != 0 {
		return 128 + int(s)
	}
	return otherwise
}

// watchSignals has the first SIGINT interrupt the running cell, and the next one, or one
// with none running, leave; SIGTERM and SIGHUP leave at once. It ends with ctx.
func watchSignals(ctx context.Context, c *agentCall, leave func()) *current {
	r := &current{}
	r.set("")
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		defer signal.Stop(signals)
		told := ""
		for {
			var s os.Signal
			select {
			case <-ctx.Done():
				return
			case s = <-signals:
			}
			id := r.id.Load().(string)
			if id == "" || id == told || s != syscall.SIGINT {
				r.left.Store(int32(s.(syscall.Signal)))
				leave()
				continue
			}
			told = id
			go func() { _, _ = c.InterruptExecution(ctx, id) }()
		}
	}()
	return r
}
