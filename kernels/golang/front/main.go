// Command front makes plugins of cells, and answers questions about code, for the
// kernel: JSON lines on stdin and stdout. It is built with the image's toolchain, whose
// go/types it has in it.
//
// The toolchain's linker runs it too, as its external linker: see link.go.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"

	"github.com/cellard/cellard/kernels/golang/compiler"
	"github.com/cellard/cellard/kernels/golang/wire"
)

// request is what the kernel asks.
type request struct {
	ID   int
	Op   string // compile, commit, complete, inspect, is_complete, variables, cancel
	Name string
	Code string
	// Cursor is in bytes.
	Cursor int
	// Whole, of compile, asks for a plugin in any case.
	Whole bool
	// Number and Done are of commit.
	Number, Done int
}

// response answers a request.
type response struct {
	ID     int
	Result *wire.Result     `json:",omitempty"`
	Errors *wire.Errors     `json:",omitempty"`
	Trace  []string         `json:",omitempty"`
	Answer *wire.Completion `json:",omitempty"`
	Doc    string           `json:",omitempty"`
	Status string           `json:",omitempty"`
	Indent string           `json:",omitempty"`
	Failed string           `json:",omitempty"`

	Variables *wire.Variables `json:",omitempty"`
}

func main() {
	if os.Getenv(wire.LinkerVariable) != "" {
		os.Exit(compiler.Link(os.Args[1:]))
	}
	// An interrupt of a cell may be for all that the kernel has started; this process is
	// told by a request.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	var o wire.Options
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	if err := in.Decode(&o); err != nil {
		fatal(err)
	}
	s, err := compiler.New(o)
	if err != nil {
		fatal(err)
	}
	serve(s, in)
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "the Go compiler's front:", err)
	os.Exit(1)
}

// serve answers requests one by one. A cancel is heard meanwhile.
func serve(s *compiler.Session, in *json.Decoder) {
	out := json.NewEncoder(os.Stdout)
	requests := make(chan request, 16)
	var mu sync.Mutex
	cancels := map[int]context.CancelFunc{}
	contexts := map[int]context.Context{}
	go func() {
		defer close(requests)
		for {
			var r request
			if err := in.Decode(&r); err != nil {
				if !errors.Is(err, io.EOF) {
					fmt.Fprintln(os.Stderr, "the Go compiler's front:", err)
				}
				mu.Lock()
				for _, cancel := range cancels {
					cancel()
				}
				mu.Unlock()
				return
			}
			mu.Lock()
			if r.Op == "cancel" {
				if cancel := cancels[r.ID]; cancel != nil {
					cancel()
				}
				mu.Unlock()
				continue
			}
			contexts[r.ID], cancels[r.ID] = context.WithCancel(context.Background())
			mu.Unlock()
			requests <- r
		}
	}()
	for r := range requests {
		mu.Lock()
		ctx, cancel := contexts[r.ID], cancels[r.ID]
		mu.Unlock()
		a := answer(ctx, s, r)
		mu.Lock()
		delete(contexts, r.ID)
		delete(cancels, r.ID)
		mu.Unlock()
		cancel()
		if err := out.Encode(a); err != nil {
			return
		}
	}
}

// answer does what a request asks. A panic is the request's failure.
func answer(ctx context.Context, s *compiler.Session, r request) (a response) {
	a.ID = r.ID
	defer func() {
		if p := recover(); p != nil {
			a.Failed = fmt.Sprintf("the Go kernel can't do this: %v", p)
		}
	}()
	switch r.Op {
	case "compile":
		result, err := s.Compile(ctx, r.Name, r.Code, r.Whole)
		switch {
		case err == nil:
			a.Result = result
		case errors.As(err, &a.Errors):
			a.Trace = a.Errors.Traceback()
		default:
			a.Failed = err.Error()
		}
	case "commit":
		s.Commit(r.Number, r.Done)
	case "complete":
		c := s.Complete(r.Code, r.Cursor)
		a.Answer = &c
	case "inspect":
		a.Doc = s.Inspect(r.Code, r.Cursor)
	case "is_complete":
		a.Status, a.Indent = s.IsComplete(r.Code)
	case "variables":
		a.Variables = s.Variables()
	default:
		a.Failed = "unknown request " + r.Op
	}
	return a
}
