package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// The languages that a Kernel runs.
const (
	JavaScript = "javascript"
	TypeScript = "typescript"
)

// Implementation is the kernel's name.
const Implementation = "cellard-node"

// Options of a Kernel. The zero value runs JavaScript on the Node that Find finds.
type Options struct {
	// Language is JavaScript or TypeScript; "" stands for JavaScript.
	Language string
	// Program is the Node to run; "" looks for one.
	Program string
	// Env is Node's environment; nil stands for this process's.
	Env []string
}

// Kernel runs cells in a Node process. It is a kernel.Mortal.
type Kernel struct {
	o     Options
	p     *process // nil before Info
	watch *watch   // nil before Node has said where it is

	closed  bool
	version string
	hello   chan struct{} // closed when Node has said its version
	first   words         // what it printed before the first cell

	mu      sync.Mutex
	last    uint32 // the id of the newest cell
	cells   map[uint32]*running
	asked   int64
	answers map[int64]chan json.RawMessage
	broken  error         // what was wrong with a frame
	over    chan struct{} // closed when no more frames come
	wg      sync.WaitGroup
}

// running is a cell that Node knows.
type running struct {
	*kernel.Cell
	ctx  context.Context
	stop context.CancelFunc
	done chan done // of one element
}

// keep is how many cells are known by their ids, for what they put out late.
const keep = 256

// New returns a Kernel; Info starts Node.
func New(o Options) *Kernel {
	if o.Language == "" {
		o.Language = JavaScript
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	return &Kernel{o: o, hello: make(chan struct{}), over: make(chan struct{}),
		cells: make(map[uint32]*running), answers: make(map[int64]chan json.RawMessage)}
}

// startWithin bounds Node's start.
const startWithin = time.Minute

// Info starts Node and says what it is.
func (k *Kernel) Info() (jupyter.KernelInfo, error) {
	if k.p == nil {
		program := k.o.Program
		if program == "" {
			found, err := NewFinder(environ.Search{Env: k.o.Env}, "").Find(context.Background())
			if err != nil {
				return jupyter.KernelInfo{}, err
			}
			program = found.Program
		}
		p, err := startProcess(program, k.o.Env)
		if err != nil {
			return jupyter.KernelInfo{}, err
		}
		k.p = p
		p.streams.SetCell(kernel.NewCell("", &k.first))
		k.wg.Add(1)
		go k.read()
	}
	late := time.NewTimer(startWithin)
	defer late.Stop()
	select {
	case <-k.hello:
	case <-k.over:
		k.p.streams.Drain()
		if said := k.first.String(); said != "" {
			return jupyter.KernelInfo{}, fmt.Errorf("%w: %s", k.end(), said)
		}
		return jupyter.KernelInfo{}, k.end()
	case <-late.C:
		return jupyter.KernelInfo{}, fmt.Errorf("the process of Node did not start within %v", startWithin)
	}
	info := jupyter.KernelInfo{
		Implementation:        Implementation,
		ImplementationVersion: k.version,
		LanguageInfo:          jupyter.LanguageInfo{Name: JavaScript, Version: k.version, MimeType: "text/javascript", FileExtension: ".js"},
		Banner:                "JavaScript on Node.js " + k.version,
	}
	if k.o.Language == TypeScript {
		info.LanguageInfo = jupyter.LanguageInfo{Name: TypeScript, Version: k.version, MimeType: "application/typescript", FileExtension: ".ts"}
		info.Banner = "TypeScript on Node.js " + k.version
	}
	return info, nil
}

// run is the command that runs a cell.
type run struct {
	Op     string            `json:"op"`
	ID     uint32            `json:"id"`
	File   string            `json:"file"`
	Code   string            `json:"code"`
	Map    string            `json:"map,omitempty"`
	Source string            `json:"source,omitempty"` // what Code was made of
	Plain  bool              `json:"plain,omitempty"`  // TypeScript as it is: see plain
	Silent bool              `json:"silent"`
	Env    map[string]string `json:"env,omitempty"`
	Cwd    string            `json:"cwd,omitempty"`
}

// Execute runs a cell. See kernel.Language.
func (k *Kernel) Execute(ctx context.Context, c *kernel.Cell) error {
	cmd := run{Op: "run", Code: c.Code, Silent: c.Silent, Env: c.Env, Cwd: c.Cwd}
	cmd.File = fmt.Sprintf("cell-%d.js", c.Count)
	if k.o.Language == TypeScript {
		cmd.File = fmt.Sprintf("cell-%d.ts", c.Count)
		if cmd.Plain = plain(c.Code); cmd.Plain {
			if err := k.run(ctx, c, cmd); !errors.Is(err, errNotPlain) {
				return err
			}
			cmd.Plain = false
		}
		made, messages := compile(cmd.File, c.Code)
		if len(messages) > 0 {
			return syntaxError(cmd.File, messages)
		}
		cmd.Code, cmd.Map, cmd.Source = made.code, made.sourceMap, c.Code
	}
	return k.run(ctx, c, cmd)
}

// run has Node run a cell, and waits for its end.
func (k *Kernel) run(ctx context.Context, c *kernel.Cell, cmd run) error {
	r := k.begin(ctx, c)
	defer r.stop()
	k.p.streams.SetCell(c)
	since := procfs.Now()
	k.mu.Lock()
	cmd.ID = k.last
	k.mu.Unlock()
	k.p.commands.json(cmd)
	select {
	case d := <-r.done:
		return outcome(ctx, d)
	case <-k.over:
		return k.end()
	case <-ctx.Done():
	}
	return k.stop(ctx, cmd.ID, r, since)
}

// begin makes a cell known by an id.
func (k *Kernel) begin(ctx context.Context, c *kernel.Cell) *running {
	r := &running{Cell: c, done: make(chan done, 1)}
	r.ctx, r.stop = context.WithCancel(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = k.last%maxID + 1
	k.cells[k.last] = r
	delete(k.cells, (k.last+maxID-keep)%maxID)
	return r
}

// maxID bounds ids: Node packs one with two bits more into a word.
const maxID = 1 << 28

// askAgain is how often a cell is asked to stop.
const askAgain = 50 * time.Millisecond

// childrenAfter is when a cell that computes, or waits in its own thread, has a termination
// on its way: after claimPatience.
const childrenAfter = 80 * time.Millisecond

// stop asks Node until the cell has ended, and ends the processes that it started.
func (k *Kernel) stop(ctx context.Context, id uint32, r *running, since procfs.Moment) error {
	// What the cell has started ends, which it may wait for; once more when it is over, for
	// what came meanwhile.
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(2)
	go func() {
		defer wg.Done()
		k.watch.stop(id, over, k.p.waits, func() { k.p.commands.json(map[string]any{"op": "settle", "id": id}) })
	}()
	go func() {
		defer wg.Done()
		select { // a cell that waits for a child must not see its end and go on
		case <-over:
		case <-time.After(childrenAfter):
		}
		k.p.reaper.End(since, nil, over)
		<-over
		k.p.reaper.End(since, nil, nil)
	}()
	defer wg.Wait()
	defer close(over)
	ticker := time.NewTicker(askAgain)
	defer ticker.Stop()
	for asks := 0; ; asks++ {
		if asks > 3 { // it doesn't end by what its own thread can do
			procfs.ReleaseFIFO(k.p.cmd.Process.Pid)
		}
		_ = k.p.cmd.Process.Signal(syscall.SIGCONT) // it may have stopped itself
		k.p.commands.json(map[string]any{"op": "interrupt", "id": id})
		select {
		case d := <-r.done:
			return outcome(ctx, d)
		case <-k.over:
			return k.end()
		case <-ticker.C:
		}
	}
}

// outcome is what Execute returns for the end of a cell.
func outcome(ctx context.Context, d done) error {
	switch {
	case d.Status == "interrupted":
		return context.Cause(ctx)
	case d.Status == "typescript":
		return errNotPlain
	case d.Error != nil:
		return &kernel.Error{Name: d.Error.Name, Value: d.Error.Value, Traceback: d.Error.Traceback}
	}
	return nil
}

// end is why no more frames come.
func (k *Kernel) end() error {
	k.mu.Lock()
	broken := k.broken
	k.mu.Unlock()
	if broken != nil {
		return broken
	}
	return k.p.died()
}

// Complete is a kernel.Language's.
func (k *Kernel) Complete(ctx context.Context, code string, cursor int) (c kernel.Completion, err error) {
	err = k.ask(ctx, map[string]any{"op": "complete", "code": code, "cursor": cursor}, &struct {
		Matches *[]string `json:"matches"`
		Start   *int      `json:"start"`
		End     *int      `json:"end"`
		Types   *[]string `json:"types"`
	}{&c.Matches, &c.Start, &c.End, &c.Types})
	if n := len([]rune(code)); err == nil && (c.Start < 0 || c.End < c.Start || c.End > n || len(c.Types) != len(c.Matches)) {
		return kernel.Completion{Start: cursor, End: cursor}, nil
	}
	return c, err
}

// Inspect is a kernel.Language's.
func (k *Kernel) Inspect(ctx context.Context, code string, cursor, detail int) (kernel.Inspection, error) {
	var i struct {
		Found bool              `json:"found"`
		Data  map[string]string `json:"data"`
	}
	err := k.ask(ctx, map[string]any{"op": "inspect", "code": code, "cursor": cursor, "detail": detail}, &i)
	if err != nil || !i.Found {
		return kernel.Inspection{}, err
	}
	data := kernel.Bundle{}
	for t, text := range i.Data {
		data[t] = text
	}
	return kernel.Inspection{Found: true, Data: data}, nil
}

// IsComplete is a kernel.Language's.
func (k *Kernel) IsComplete(ctx context.Context, code string) (c kernel.Completeness, err error) {
	if k.o.Language == TypeScript {
		return completeness(code), nil
	}
	err = k.ask(ctx, map[string]any{"op": "isComplete", "code": code}, &struct {
		Status *string `json:"status"`
		Indent *string `json:"indent"`
	}{&c.Status, &c.Indent})
	return c, err
}

// ask sends a command and decodes the answer. With a late callback that computes for
// ever there is none.
func (k *Kernel) ask(ctx context.Context, cmd map[string]any, into any) error {
	answer := make(chan json.RawMessage, 1)
	k.mu.Lock()
	k.asked++
	n := k.asked
	k.answers[n] = answer
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		delete(k.answers, n)
		k.mu.Unlock()
	}()
	cmd["n"] = n
	k.p.commands.json(cmd)
	select {
	case b := <-answer:
		var failed struct{ Failed string }
		if json.Unmarshal(b, &failed) == nil && failed.Failed != "" {
			return errors.New(strings.ToValidUTF8(failed.Failed, "\uFFFD"))
		}
		return json.Unmarshal(b, into)
	case <-k.over:
		return k.end()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Ended is a kernel.Mortal's.
func (k *Kernel) Ended(ctx context.Context) error {
	select {
	case <-k.over:
		return k.end()
	case <-ctx.Done():
		return nil
	}
}

// Close is a kernel.Language's. A second call does nothing.
func (k *Kernel) Close() error {
	if k.p == nil || k.closed {
		return nil
	}
	k.closed = true
	k.mu.Lock()
	for _, r := range k.cells {
		r.stop() // a question that still waits
	}
	k.mu.Unlock()
	k.p.close()
	k.wg.Wait()
	if k.watch != nil {
		k.watch.close()
	}
	return nil
}
