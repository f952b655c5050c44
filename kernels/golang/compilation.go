package golang

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/kernels/golang/wire"
	"github.com/cellard/cellard/kernels/output"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// compilation is the front, and another in its place when it has died: the worker has
// all values still. What a front knows comes of the cells that have run, which are noted
// in a file. It is safe for concurrent use.
type compilation struct {
	start func(past string, number int) (*front, error)
	past  string // the file

	mu     sync.Mutex // held over a start
	front  *front
	file   *os.File
	number int   // the highest that a front has given a cell
	lost   error // the file lacks a cell
	closed bool
}

func startCompilation(r *output.Reaper, w *workspace, t *Toolchain, dir string) (*compilation, error) {
	c := &compilation{past: filepath.Join(dir, "cells"), start: func(past string, number int) (*front, error) {
		return startFront(r, w, t, dir, past, number)
	}}
	var err error
	if c.file, err = os.OpenFile(c.past, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	if c.front, err = c.start("", 0); err != nil {
		c.file.Close()
		os.Remove(c.past)
		return nil, err
	}
	return c, nil
}

// replacedError tells that the front died over what it was asked, and that another has
// taken over.
type replacedError struct{ died error }

func (e *replacedError) Error() string {
	return fmt.Sprintf("%v while it was asked, perhaps for want of memory; another has taken over, and all values and declarations are kept: run the cell again", e.died)
}

func (e *replacedError) Unwrap() error { return e.died }

// ask asks the front that there is. The error is front.ask's, a *replacedError, or a
// *kernel.DiedError where no other could take over.
func (c *compilation) ask(ctx context.Context, q frontRequest) (frontResponse, error) {
	f, err := c.alive()
	if err != nil {
		return frontResponse{}, err
	}
	a, err := f.ask(ctx, q)
	if a.Result != nil {
		c.mu.Lock()
		c.number = max(c.number, a.Result.Number)
		c.mu.Unlock()
	}
	var died *kernel.DiedError
	if errors.As(err, &died) {
		if _, err := c.alive(); err != nil {
			return frontResponse{}, err
		}
		return frontResponse{}, &replacedError{died}
	}
	return a, err
}

// commit notes a cell that has run, and tells the front of it.
func (c *compilation) commit(ctx context.Context, p wire.Past) error {
	b, err := json.Marshal(p)
	if err == nil {
		_, err = c.file.Write(append(b, '\n'))
	}
	if err != nil { // the disk is full
		c.mu.Lock()
		c.lost = errors.Join(c.lost, err)
		c.mu.Unlock()
	}
	_, err = c.ask(ctx, frontRequest{Op: "commit", Number: p.Number, Done: p.Done})
	if replaced := (*replacedError)(nil); errors.As(err, &replaced) {
		return nil // the other has read it
	}
	return err
}

// alive is the front that there is; where that has died, another.
func (c *compilation) alive() (*front, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.front.ended:
	default:
		return c.front, nil
	}
	old := c.front.died(errors.New("it has ended"))
	leftovers(c.front.cmd.Process.Pid)
	if c.lost != nil || c.closed {
		return nil, old
	}
	next, err := c.start(c.past, c.number)
	if err != nil {
		return nil, old
	}
	// It answers once it knows all.
	if _, err := next.ask(context.Background(), frontRequest{Op: "is_complete"}); err != nil {
		next.close()
		return nil, old
	}
	c.front.close()
	c.front = next
	return next, nil
}

func (c *compilation) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.front.close()
	c.file.Close()
}

// leftovers ends what a front that has died has started: a linker writes on.
func leftovers(session int) {
	for end := time.Now().Add(endGrace); time.Now().Before(end); time.Sleep(time.Millisecond) {
		left := false
		for _, s := range procfs.All() {
			if s.Session == session && s.State != 'Z' {
				left = true
				_ = syscall.Kill(s.PID, syscall.SIGKILL)
			}
		}
		if !left {
			return
		}
	}
}
