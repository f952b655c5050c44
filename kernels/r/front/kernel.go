package front

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// Options of a Kernel. Argv, Files and Env are what package r says of its kernel.
type Options struct {
	// Argv is R's command line. {dir} in it stands for its private directory,
	// {connection_file} for its connection file.
	Argv []string
	// Files are written into that directory, by name.
	Files map[string][]byte
	// Env is added to this process's environment, as NAME=value.
	Env []string
	// Temp is where that directory is made; "" where temporary files belong.
	Temp string
	// Keeper is the command line of a process that runs supervisor.Keeper; nil for none.
	Keeper []string
}

// Kernel runs cells in an R. It is a kernel.Lister and a kernel.Mortal. Make it by New.
type Kernel struct {
	o      Options
	p      *process // nil before Info
	closed bool
	most   int64         // bytes of a message's content
	over   chan struct{} // closed when no more messages come
	asking sync.WaitGroup

	mu  sync.Mutex
	cur *request // that R answers now
}

var (
	_ kernel.Lister = (*Kernel)(nil)
	_ kernel.Mortal = (*Kernel)(nil)
)

// New returns a Kernel; Info starts R.
func New(o Options) *Kernel { return &Kernel{o: o, most: maxContent, over: make(chan struct{})} }

// Info starts R and says what it is.
func (k *Kernel) Info() (jupyter.KernelInfo, error) {
	if k.p == nil {
		k.p = &process{}
		if err := k.p.start(k.o, int(k.most)); err != nil {
			close(k.over)
			return jupyter.KernelInfo{}, err
		}
		go k.receive()
	}
	info := k.p.info
	info.SupportedFeatures = nil // Serve tells
	return info, nil
}

// request is one that R answers: one at a time.
type request struct {
	*jupyter.Outgoing
	cell *kernel.Cell    // nil: none runs
	ctx  context.Context // of what the cell asks

	busy, done chan struct{} // closed when R has begun with it, and when it is through
	// reply is the reply's content, once done.
	reply json.RawMessage
	// What has come of it: receive's alone.
	begun, idle, replied bool
}

// begin sends a request to R. Its end is told by end.
func (k *Kernel) begin(ctx context.Context, c *kernel.Cell, msgType string, content, metadata any) *request {
	r := &request{Outgoing: k.p.client.NewMessage(msgType, content), cell: c, ctx: ctx, busy: make(chan struct{}), done: make(chan struct{})}
	r.Metadata = metadata
	k.mu.Lock()
	k.cur = r
	k.mu.Unlock()
	_ = k.p.client.Send(jupyter.Shell, r.Outgoing) // an error is the channel's end, and told by over
	return r
}

// end waits until R is through with a request, or ctx ends. Then its reply, if it comes, is
// nobody's.
func (k *Kernel) end(ctx context.Context, r *request) error {
	select {
	case <-r.done:
		return nil
	case <-k.over:
		return k.p.died()
	case <-ctx.Done():
	}
	select {
	case <-r.done: // both at once
		return nil
	default:
		return context.Cause(ctx)
	}
}

// Execute runs a cell. See kernel.Language.
func (k *Kernel) Execute(ctx context.Context, c *kernel.Cell) error {
	k.p.streams.SetCell(c)
	since := procfs.Now()
	var metadata any
	if c.Env != nil || c.Cwd != "" {
		metadata = map[string]any{"cellard": map[string]any{"env": c.Env, "cwd": c.Cwd}}
	}
	asking, cancel := context.WithCancelCause(ctx)
	defer k.asking.Wait()
	defer cancel(nil)
	r := k.begin(asking, c, "execute_request", jupyter.ExecuteRequest{
		Code: c.Code, Silent: c.Silent, StoreHistory: c.StoreHistory, AllowStdin: c.AllowStdin}, metadata)
	err := k.end(ctx, r)
	if err != nil && ctx.Err() != nil {
		err = k.stop(r, since)
	}
	if err != nil {
		return err
	}
	k.p.streams.Drain()
	return failure(r.reply)
}

// failure is what a reply tells of a failure.
func failure(reply json.RawMessage) error {
	var c jupyter.ExecuteReply
	if err := json.Unmarshal(reply, &c); err != nil {
		return &kernel.Error{Name: "KernelError", Value: "R's reply could not be read: " + err.Error()}
	}
	if c.Status == jupyter.StatusOK {
		return nil
	}
	return &kernel.Error{Name: c.EName, Value: c.EValue, Traceback: c.Traceback}
}

const (
	// askAgain is how often a cell is asked to stop, and nudges how often R is asked for its
	// info besides.
	askAgain = time.Second
	nudges   = 10
	// lookAgain is how often processes that the cell has started are looked for meanwhile.
	lookAgain = 50 * time.Millisecond
	// syncAsks is how often R is asked for a sign of life after an interrupt.
	syncAsks = 5
)

// stop interrupts R until the cell or question has ended, and ends the processes that it
// started.
func (k *Kernel) stop(r *request, since procfs.Moment) error {
	over := make(chan struct{})
	var wg sync.WaitGroup
	end := sync.OnceFunc(func() { close(over); wg.Wait() })
	defer end()
	again := time.NewTicker(askAgain)
	defer again.Stop()
	for asks, busy := 0, r.busy; ; {
		_ = k.p.cmd.Process.Signal(syscall.SIGCONT) // it may have stopped itself
		if busy == nil {
			// R ignores the signal while it waits for a child. When that ends, it knows by a
			// request for its info that waits (cellard_commands.R).
			if asks < nudges {
				_ = k.p.client.Send(jupyter.Shell, k.p.client.NewMessage("kernel_info_request", struct{}{}))
			}
			if asks > 0 { // before the signal, which has R leave its wait for a moment
				procfs.ReleaseFIFO(k.p.cmd.Process.Pid)
			}
			_ = k.p.cmd.Process.Signal(syscall.SIGINT)
			if asks == 0 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					k.endStarted(since, over)
				}()
			}
			asks++
		}
		select {
		case <-busy: // an interrupt before that is no cell's
			busy = nil
		case <-r.done:
			end()
			return k.sync()
		case <-k.over:
			return k.p.died()
		case <-again.C:
		}
	}
}

// endStarted ends what the cell has started, which it may wait for, until it is over, and
// then what is left. A child may be about to begin when the interrupt comes.
func (k *Kernel) endStarted(since procfs.Moment, over <-chan struct{}) {
	for ended := false; !ended; {
		k.p.reaper.End(since, nil, over)
		select {
		case <-over:
			ended = true
		case <-time.After(lookAgain):
		}
	}
	k.p.reaper.End(since, nil, nil)
}

// sync waits for R's answer after an interrupt, so that a late one can't hit the next cell. A
// question may be lost by one.
func (k *Kernel) sync() error {
	for range syncAsks {
		ctx, cancel := context.WithTimeout(context.Background(), askAgain)
		err := k.end(ctx, k.begin(ctx, nil, "kernel_info_request", struct{}{}, nil))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	return nil
}

// ask has R answer a question, and decodes the reply. One whose time is over is stopped as
// a cell is: what it has R call may be a cell's, and not end, and the next cell waits for it.
func (k *Kernel) ask(ctx context.Context, msgType string, content, reply any) error {
	since := procfs.Now()
	r := k.begin(ctx, nil, msgType, content, nil)
	err := k.end(ctx, r)
	if err != nil && ctx.Err() != nil {
		if ended := k.stop(r, since); ended != nil {
			err = ended
		}
	}
	if err == nil {
		err = failed(r.reply)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(r.reply, reply)
}

// failed is failure for a reply whose status may tell something else.
func failed(reply json.RawMessage) error {
	var c struct{ Status string }
	if json.Unmarshal(reply, &c) != nil || c.Status == jupyter.StatusError {
		return failure(reply)
	}
	return nil
}

// Complete is a kernel.Language's.
func (k *Kernel) Complete(ctx context.Context, code string, cursor int) (kernel.Completion, error) {
	var c struct {
		Matches []string `json:"matches"`
		Start   int      `json:"cursor_start"`
		End     int      `json:"cursor_end"`
	}
	err := k.ask(ctx, "complete_request", jupyter.CompleteRequest{Code: code, CursorPos: cursor}, &c)
	return kernel.Completion{Matches: c.Matches, Start: c.Start, End: c.End}, err
}

// Inspect is a kernel.Language's.
func (k *Kernel) Inspect(ctx context.Context, code string, cursor, detail int) (kernel.Inspection, error) {
	var c struct {
		Found bool          `json:"found"`
		Data  kernel.Bundle `json:"data"`
	}
	err := k.ask(ctx, "inspect_request", jupyter.InspectRequest{Code: code, CursorPos: cursor, DetailLevel: detail}, &c)
	return kernel.Inspection{Found: c.Found, Data: c.Data}, err
}

// IsComplete is a kernel.Language's.
func (k *Kernel) IsComplete(ctx context.Context, code string) (kernel.Completeness, error) {
	var c struct {
		Status string `json:"status"`
		Indent string `json:"indent"`
	}
	err := k.ask(ctx, "is_complete_request", jupyter.IsCompleteRequest{Code: code}, &c)
	return kernel.Completeness{Status: c.Status, Indent: c.Indent}, err
}

// Variables is a kernel.Lister's.
func (k *Kernel) Variables(ctx context.Context) ([]api.Variable, int, error) {
	var list api.VariableList
	err := k.ask(ctx, "variables_request", struct{}{}, &list)
	return list.Data, list.Total, err
}

// Ended is a kernel.Mortal's.
func (k *Kernel) Ended(ctx context.Context) error {
	select {
	case <-k.over:
		return k.p.died()
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
	err := k.p.close()
	<-k.over
	return err
}
