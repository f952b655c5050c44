package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/cellard/cellard/notebook"
	"github.com/cellard/cellard/protocol/api"
)

// runNotebook runs a notebook's cells as nbclient does, and saves it after each.
func (f *runFlags) runNotebook(ctx context.Context, p *printer, running *current) (int, error) {
	nb := f.notebook
	p.quiet = true // what comes goes into the notebook
	shown := notebook.Shown{}
	n := 0
	for i, cell := range nb.Cells {
		code := notebook.Source(cell)
		if cell["cell_type"] != "code" || strings.TrimSpace(code) == "" || notebook.HasTag(cell, "skip-execution") {
			continue
		}
		n++
		req := f.req
		req.Code = code
		outputs := &notebook.Outputs{Shown: shown, Fetch: p.agent.fetch}
		cell["outputs"], cell["execution_count"] = outputs.List(), nil
		if f.recordTiming {
			notebook.SetTiming(cell, nil)
		}
		p.tap = func(ctx context.Context, ev api.Event) error {
			err := outputs.Event(ctx, ev)
			cell["outputs"], cell["execution_count"] = outputs.List(), outputs.Count()
			return err
		}
		x, err := p.run(ctx, req, running)
		if err == nil && f.recordTiming {
			notebook.SetTiming(cell, notebook.Times(x.Timing))
		}
		if err == nil && n == 1 {
			err = f.noteLanguage(ctx, p.agent, x.ContextID)
		}
		if err = errors.Join(err, nb.Save(f.notebookOut)); err != nil {
			return exitAgent, err
		}
		allowed := x.Status == api.StatusError && x.State == api.StateKept && (f.allowErrors || notebook.HasTag(cell, "raises-exception"))
		if x.Status != api.StatusOK && !allowed {
			fmt.Fprintf(os.Stderr, "cell %d of %s:\n", i+1, nb.File)
			p.ending("run", x)
			return exitOf(x.Status), nil
		}
	}
	if n == 0 {
		return exitOK, nb.Save(f.notebookOut)
	}
	return exitOK, nil
}

// noteLanguage notes which language's kernel has run the notebook.
func (f *runFlags) noteLanguage(ctx context.Context, c *agentCall, contextID string) error {
	x, err := c.Context(ctx, contextID)
	if err == nil {
		f.notebook.SetLanguageInfo(x.LanguageInfo)
	}
	return err
}

// fetch opens a ref, whose context is in its path.
func (c *agentCall) fetch(ctx context.Context, ref api.Ref) (io.ReadCloser, error) {
	return c.Result(ctx, path.Base(path.Dir(path.Dir(ref.Path))), ref)
}
