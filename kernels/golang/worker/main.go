// Command worker loads cells and runs them. It is built with the image's toolchain and
// started by the kernel, which speaks with it by JSON lines on the descriptors 3 (to the
// worker) and 4 (from it).
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"plugin"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/cellard/cellard/kernels/golang/host"
	"github.com/cellard/cellard/kernels/golang/wire"
)

// request is what the kernel says.
type request struct {
	Op   string // run, stop, answer, variables, taken
	Cell int
	// Of run.
	Plugin string
	Direct *wire.Program
	Stdin  bool
	Env    map[string]string
	Cwd    string
	// Of answer: a line, or why there is none.
	Text  string
	Error string
	// Variables are those to tell; Cell is the question's number.
	Variables []wire.Place
}

// done is the worker's last word on a cell.
type done struct {
	Kind string `json:"kind"` // done
	Cell int    `json:"cell"`
	host.Outcome
	// LoadError tells why the cell could not be loaded; nothing of it has run.
	LoadError string `json:",omitempty"`
	// Unknown: a program can't be evaluated, and nothing of it was.
	Unknown bool `json:",omitempty"`
}

// told answers a question about variables.
type told struct {
	Kind string `json:"kind"` // variables
	Cell int    `json:"cell"`
	Told []wire.Told
}

// grace is how long a cell that was told to stop may take before its goroutine is left
// behind.
const grace = 250 * time.Millisecond

type worker struct {
	mu  sync.Mutex // held over a write
	out *json.Encoder

	state  sync.Mutex
	cell   int
	stop   chan struct{}
	asking map[int]chan request  // the cells that wait for a line
	put    map[int]chan struct{} // what the kernel has not said yet that it took
	puts   int
}

func main() {
	for _, fd := range []int{3, 4} {
		syscall.CloseOnExec(fd)
	}
	// An interrupt comes as a request; the signal is for what cells start.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	w := &worker{out: json.NewEncoder(os.NewFile(4, "events")), asking: map[int]chan request{}, put: map[int]chan struct{}{}}
	w.out.SetEscapeHTML(false)
	host.Setup(func(e host.Event) { w.send(e) }, w.show, w.ask)
	host.Idle()
	in := json.NewDecoder(bufio.NewReaderSize(os.NewFile(3, "requests"), 64<<10))
	for {
		var r request
		if err := in.Decode(&r); err != nil {
			if errors.Is(err, io.EOF) {
				os.Exit(0)
			}
			fmt.Fprintln(os.Stderr, "the Go worker:", err)
			os.Exit(1)
		}
		switch r.Op {
		case "run":
			stop := make(chan struct{})
			w.state.Lock()
			w.cell, w.stop = r.Cell, stop
			w.state.Unlock()
			go w.run(r, stop)
		case "stop":
			w.state.Lock()
			if w.cell == r.Cell && w.stop != nil {
				close(w.stop)
				w.stop = nil
			}
			w.state.Unlock()
		case "taken":
			w.taken(r.Cell)
		case "variables":
			go func() { w.send(told{"variables", r.Cell, host.Variables(r.Variables)}) }()
		case "answer":
			w.state.Lock()
			if to := w.asking[r.Cell]; to != nil {
				delete(w.asking, r.Cell)
				to <- r
			}
			w.state.Unlock()
		}
	}
}

// show sends an event, and closes the channel when the kernel says that it took it, or
// when there is nothing to take.
func (w *worker) show(e host.Event) <-chan struct{} {
	taken := make(chan struct{})
	w.state.Lock()
	w.puts++
	e.Ask = w.puts
	w.put[e.Ask] = taken
	w.state.Unlock()
	if !w.send(e) {
		w.taken(e.Ask)
	}
	return taken
}

func (w *worker) taken(ask int) {
	w.state.Lock()
	defer w.state.Unlock()
	if taken := w.put[ask]; taken != nil {
		delete(w.put, ask)
		close(taken)
	}
}

// send sends a message. False: its values can't be sent.
func (w *worker) send(v any) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.out.Encode(v); err != nil {
		var unsupported *json.UnsupportedTypeError
		var value *json.UnsupportedValueError
		var marshaler *json.MarshalerError
		if errors.As(err, &unsupported) || errors.As(err, &value) || errors.As(err, &marshaler) {
			fmt.Fprintln(os.Stderr, "display:", err)
			return false
		}
		os.Exit(1) // the kernel is gone
	}
	return true
}

// run loads a cell and runs it.
func (w *worker) run(r request, stop <-chan struct{}) {
	d := done{Kind: "done", Cell: r.Cell}
	c := host.NewCell(r.Cell, r.Stdin)
	if r.Direct != nil {
		if c.Prepare(r.Direct) != nil {
			d.Unknown = true
			w.send(d)
			return
		}
	} else {
		if err := load(r.Plugin); err != nil {
			d.LoadError = err.Error()
			w.send(d)
			return
		}
		host.Keep(r.Cell)
	}
	undo, err := surround(r.Env, r.Cwd)
	if err != nil {
		// As in every language.
		d.Failure = &host.Failure{Name: "InvalidDirectory", Value: fmt.Sprintf("the directory of the cell can't be entered: %s: %v", r.Cwd, errors.Unwrap(err))}
		undo()
		w.send(d)
		return
	}
	d.Outcome = c.Run(stop, grace)
	undo()
	w.send(d)
}

// load maps a cell's plugin in. Its init registers what is to run.
func load(path string) (err error) {
	defer func() {
		os.Remove(path)
		if r := recover(); r != nil {
			err = fmt.Errorf("loading the cell: %v\n%s", r, debug.Stack())
		}
	}()
	if path == "" {
		return nil
	}
	_, err = plugin.Open(path)
	return err
}

// surround sets a cell's own environment and directory. undo takes back what the cell
// has not changed itself.
func surround(env map[string]string, cwd string) (undo func(), err error) {
	type variable struct {
		value string
		there bool
	}
	before := map[string]variable{}
	for name, value := range env {
		was, there := os.LookupEnv(name)
		before[name] = variable{was, there}
		os.Setenv(name, value)
	}
	home := ""
	inside := ""
	undo = func() {
		for name, v := range before {
			if os.Getenv(name) != env[name] {
				continue
			}
			if v.there {
				os.Setenv(name, v.value)
			} else {
				os.Unsetenv(name)
			}
		}
		if here, err := os.Getwd(); home != "" && err == nil && here == inside {
			_ = os.Chdir(home)
		}
	}
	if cwd == "" {
		return undo, nil
	}
	here, err := os.Getwd()
	if err != nil {
		here = "/"
	}
	if err := os.Chdir(cwd); err != nil {
		return undo, err
	}
	home = here
	inside, _ = os.Getwd()
	return undo, nil
}

// ask asks the kernel for a line of input. It is called by one goroutine at a time.
func (w *worker) ask(c *host.Cell) (string, error) {
	answer := make(chan request, 1)
	w.state.Lock()
	w.asking[c.Number] = answer
	w.state.Unlock()
	w.send(host.Event{Kind: "input", Cell: c.Number})
	r := <-answer
	if r.Error != "" {
		return "", errors.New(r.Error)
	}
	return r.Text, nil
}
