package golang

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"

	"github.com/cellard/cellard/kernels/golang/wire"
	"github.com/cellard/cellard/kernels/output"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// frontRequest and frontResponse are what the front is asked and answers; package front
// has the same.
type frontRequest struct {
	ID           int
	Op           string
	Name         string `json:",omitempty"`
	Code         string `json:",omitempty"`
	Cursor       int    `json:",omitempty"`
	Whole        bool   `json:",omitempty"`
	Number, Done int    `json:",omitempty"`
}

type frontResponse struct {
	ID     int
	Result *wire.Result
	Errors *wire.Errors
	Trace  []string
	Answer *wire.Completion
	Doc    string
	Status string
	Indent string
	Failed string

	Variables *wire.Variables
}

// front is the process that compiles.
type front struct {
	*process
	mu      sync.Mutex
	next    int
	waiting map[int]chan frontResponse
}

// startFront starts one. past and number are those of wire.Options.
func startFront(r *output.Reaper, w *workspace, t *Toolchain, dir, past string, number int) (*front, error) {
	var linker wire.Linker
	b, err := os.ReadFile(w.linker())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &linker); err != nil {
		return nil, fmt.Errorf("%s: %w: remove the directory, so that it is made anew", w.linker(), err)
	}
	f := &front{waiting: map[int]chan frontResponse{}}
	cmd := exec.Command(w.front())
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "CC="+t.CC)
	cmd.SysProcAttr = deathWith()
	cmd.SysProcAttr.Setsid = true // no terminal's interrupt is for it; see leftovers
	if f.process, err = spawn(r, cmd, false, f.message); err != nil {
		return nil, err
	}
	if err = f.send(wire.Options{Goroot: t.Root, Language: t.Language, Importcfg: w.importcfg(), Dir: dir,
		Linker: linker, LinkProgram: w.front(), Cache: w.cache(), Shared: w.shared(),
		Past: past, Number: number}); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *front) message(line []byte) error {
	var a frontResponse
	if err := json.Unmarshal(line, &a); err != nil {
		return err
	}
	f.mu.Lock()
	to := f.waiting[a.ID]
	delete(f.waiting, a.ID)
	f.mu.Unlock()
	if to != nil {
		to <- a
	}
	return nil
}

// failedError tells that the front could not do what it was asked to; the cell's error.
type failedError struct{ text string }

func (e *failedError) Error() string { return e.text }

// ask asks the front. When ctx ends it is told to stop, and its answer is still awaited:
// it then comes soon.
func (f *front) ask(ctx context.Context, q frontRequest) (frontResponse, error) {
	answer := make(chan frontResponse, 1)
	f.mu.Lock()
	f.next++
	q.ID = f.next
	f.waiting[q.ID] = answer
	f.mu.Unlock()
	if err := f.send(q); err != nil {
		return frontResponse{}, f.died(err)
	}
	canceled := ctx.Done()
	for {
		select {
		case a := <-answer:
			if a.Failed != "" && ctx.Err() != nil {
				return a, context.Cause(ctx)
			}
			if a.Failed != "" {
				return a, &failedError{a.Failed}
			}
			return a, nil
		case <-f.ended:
			return frontResponse{}, f.died(errors.New("no answer"))
		case <-canceled:
			canceled = nil
			_ = f.send(frontRequest{ID: q.ID, Op: "cancel"})
		}
	}
}

func (f *front) died(err error) error {
	<-f.ended
	if f.cmd.ProcessState != nil {
		return &kernel.DiedError{What: "the Go compiler's front", State: f.cmd.ProcessState}
	}
	return err
}
