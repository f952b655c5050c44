package golang

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/cellard/cellard/kernels/golang/wire"
	"github.com/cellard/cellard/kernels/output"
	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// workerRequest is what the worker is told; package worker has the same.
type workerRequest struct {
	Op     string
	Cell   int
	Plugin string            `json:",omitempty"`
	Direct *wire.Program     `json:",omitempty"`
	Stdin  bool              `json:",omitempty"`
	Env    map[string]string `json:",omitempty"`
	Cwd    string            `json:",omitempty"`
	Text   string            `json:",omitempty"`
	Error  string            `json:",omitempty"`

	Variables []wire.Place `json:",omitempty"`
}

// workerMessage is what comes from the worker.
type workerMessage struct {
	Kind string `json:"kind"`
	Cell int    `json:"cell"`
	Name string `json:"name"`
	Text string `json:"text"`
	Data kernel.Bundle
	Path string `json:"path"`
	Ask  int    `json:"ask"`

	Done      int
	Exit      *int
	Failure   *failure
	Stopped   bool
	Left      bool
	LoadError string
	Unknown   bool

	Told []wire.Told
}

type failure struct {
	Name, Value string
	Traceback   []string
}

// keepCells is for how many cells late output is sent in their own name.
const keepCells = 4096

// worker is the process that cells run in.
type worker struct {
	*process
	streams *output.Streams
	inputs  sync.WaitGroup

	mu     sync.Mutex
	cells  map[int]*running
	recent []int
	// question is the number of the last one about variables, told takes its answer.
	question int
	told     chan []wire.Told
}

// running is a cell that the worker was given.
type running struct {
	cell *kernel.Cell
	ctx  context.Context
	done chan workerMessage
}

func startWorker(r *output.Reaper, w *workspace) (*worker, error) {
	streams, stdout, stderr, err := output.NewStreams()
	if err != nil {
		return nil, err
	}
	k := &worker{streams: streams, cells: map[int]*running{}}
	cmd := exec.Command(w.worker())
	cmd.Stdout, cmd.Stderr = stdout, stderr
	// Of a death all goroutines' stacks say little, and much of it.
	cmd.Env = append(os.Environ(), "GOTRACEBACK=single")
	cmd.SysProcAttr = deathWith()
	k.process, err = spawn(r, cmd, true, k.message)
	stdout.Close()
	stderr.Close()
	if err != nil {
		streams.Close()
		return nil, err
	}
	return k, nil
}

// begin gives the worker a cell to run. Its last message comes by the channel.
func (k *worker) begin(ctx context.Context, c *kernel.Cell, made *wire.Result) (<-chan workerMessage, error) {
	// The text is not needed any more, and may be large.
	kept := *c
	kept.Code = ""
	r := &running{cell: &kept, ctx: ctx, done: make(chan workerMessage, 1)}
	k.mu.Lock()
	k.cells[made.Number] = r
	if k.recent = append(k.recent, made.Number); len(k.recent) > keepCells {
		delete(k.cells, k.recent[0])
		k.recent = k.recent[1:]
	}
	k.mu.Unlock()
	k.streams.SetCell(kernel.NewCell("", unmarked{c}))
	return r.done, k.send(workerRequest{Op: "run", Cell: made.Number, Plugin: made.Plugin, Direct: made.Direct, Stdin: c.AllowStdin, Env: c.Env, Cwd: c.Cwd})
}

// message is called with each line of the worker's.
func (k *worker) message(line []byte) error {
	var m workerMessage
	if err := json.Unmarshal(line, &m); err != nil {
		return err
	}
	if m.Kind == "variables" {
		k.hasTold(m)
		return nil
	}
	if m.Ask != 0 {
		defer k.send(workerRequest{Op: "taken", Cell: m.Ask})
	}
	k.mu.Lock()
	r := k.cells[m.Cell]
	k.mu.Unlock()
	if r == nil {
		return nil
	}
	// What the cell and its children have written to the pipes was there before this; what
	// comes with the cell's end is not for here.
	if m.Kind != "done" {
		k.streams.HandOn()
	}
	switch m.Kind {
	case "done":
		select {
		case r.done <- m:
		default:
		}
	case "stream":
		text := wire.Unmark(m.Text)
		if m.Name == "stderr" {
			r.cell.Stderr(text)
		} else {
			r.cell.Stdout(text)
		}
	case "result", "display", "file":
		k.show(r, m)
	case "input":
		k.inputs.Add(1)
		go func() {
			defer k.inputs.Done()
			a := workerRequest{Op: "answer", Cell: m.Cell}
			text, err := r.cell.Input(r.ctx, "", false)
			if a.Text = text; err != nil {
				a.Error = err.Error()
			}
			_ = k.send(a)
		}()
	}
	return nil
}

func (k *worker) show(r *running, m workerMessage) {
	if m.Kind == "file" {
		bundle, err := output.File(m.Path, output.FileLimit())
		if err != nil {
			r.cell.Stderr("display: " + err.Error() + "\n")
			return
		}
		bundle["text/plain"] = strings.ToValidUTF8(m.Text, "\uFFFD")
		m.Data = bundle
	}
	if len(m.Data) == 0 {
		return
	}
	if m.Kind == "result" {
		r.cell.Result(m.Data, nil)
	} else {
		r.cell.Display(m.Data, nil, "")
	}
}

func (k *worker) close() {
	k.process.close()
	k.inputs.Wait()
	k.streams.Close()
}

// unmarked hands on streams without the marks on users' names (see package compiler).
type unmarked struct{ to *kernel.Cell }

func (u unmarked) Publish(_ string, content any) {
	s, ok := content.(jupyter.Stream)
	switch text := wire.Unmark(s.Text); {
	case !ok:
	case s.Name == "stderr":
		u.to.Stderr(text)
	default:
		u.to.Stdout(text)
	}
}

func (u unmarked) Input(context.Context, string, bool) (string, error) {
	return "", kernel.ErrStdinNotAllowed
}
