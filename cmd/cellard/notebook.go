package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

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

// outputFile is where a notebook that is to be written to file is saved: what a link leads
// to, else the file itself. Saving replaces it by a rename, so it must be a regular file,
// or not there yet: a device or a FIFO would be gone.
func outputFile(file string) (string, error) {
	fi, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		if dir := filepath.Dir(file); !isDir(dir) {
			return "", fmt.Errorf("-o: there is no directory %s; make it first", dir)
		}
		return file, mayReplace(file)
	}
	if err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		link := file
		if file, err = filepath.EvalSymlinks(link); err != nil {
			return "", fmt.Errorf("-o %s is a link that leads nowhere: %w; remove it, or name another file", link, err)
		}
		fi, err = os.Lstat(file)
	}
	if err != nil {
		return "", fmt.Errorf("-o: %w", err)
	}
	if !fi.Mode().IsRegular() {
		return "", fmt.Errorf("-o %s is %s, which the notebook would replace; name a file, a new one or one to overwrite", file, kindOf(fi.Mode()))
	}
	return file, mayReplace(file)
}

// mayReplace tells whether file's directory takes a new one.
func mayReplace(file string) error {
	if err := unix.Access(filepath.Dir(file), unix.W_OK); err != nil {
		return fmt.Errorf("-o %s: its directory can't be written to: %w; name a file in another", file, err)
	}
	return nil
}

// kindOf is what a file is that is no regular one.
func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "no regular file"
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
