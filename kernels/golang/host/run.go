package host

import (
	"fmt"
	"time"

	"github.com/cellard/cellard/kernels/golang/live"
	"github.com/cellard/cellard/kernels/golang/live/stdin"
)

// Outcome is what became of a cell.
type Outcome struct {
	// Done is how many of the cell's declarations have run.
	Done int
	// Exit is the code of os.Exit, if the cell called it.
	Exit    *int
	Failure *Failure
	// Stopped: it ended because it was told to.
	Stopped bool
	// Left: its goroutine did not end in time, and was left behind.
	Left bool
}

// Run runs what was registered or prepared last as a cell, and returns when the cell is over: when
// its function is, when it exits or a goroutine of its panics, or a grace after stop was
// closed.
func (c *Cell) Run(stop <-chan struct{}, grace time.Duration) Outcome {
	run, done := live.Run, live.Done
	live.Run, live.Done = nil, nil
	stdin.Stdin.Forget()
	reopenStandard()
	wrote.Store(0)
	switches.Store(0)
	finished := make(chan Outcome, 1)
	started, begin := make(chan struct{}), make(chan struct{})
	go c.run(run, started, begin, finished)
	<-started
	current.Store(c)
	close(begin)
	out := c.wait(stop, grace, finished)
	if done != nil {
		out.Done = *done
	}
	c.over.Store(true)
	current.Store(nil)
	if c.alive.Load() == 0 {
		c.rest()
	}
	return out
}

func (c *Cell) wait(stop <-chan struct{}, grace time.Duration, finished <-chan Outcome) Outcome {
	select {
	case out := <-finished:
		return out
	case <-c.ended:
		return c.early(finished, grace)
	case <-stop:
	}
	c.Stop()
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case out := <-finished:
		out.Stopped = true
		return out
	case <-c.ended:
		return c.early(finished, 0)
	case <-t.C:
		return Outcome{Stopped: true, Left: true}
	}
}

// early is the outcome of a cell that ended before its function did.
func (c *Cell) early(finished <-chan Outcome, grace time.Duration) Outcome {
	c.mu.Lock()
	out := Outcome{Exit: c.exit, Failure: c.failure}
	c.mu.Unlock()
	if out.Exit == nil && grace > 0 {
		// A goroutine's panic stops the cell: what it prints while it ends is still its own.
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-finished:
		case <-t.C:
		}
	}
	return out
}

// frame is the frame of a cell that isn't compiled.
func (c *Cell) frame() []string {
	if c.program == "" {
		return nil
	}
	return []string{fmt.Sprintf("%s:%d  the cell", c.program, c.line)}
}

// run is the cell's goroutine.
func (c *Cell) run(run func(), started chan<- struct{}, begin <-chan struct{}, finished chan<- Outcome) {
	c.adopt()
	defer c.leave()
	close(started)
	<-begin
	var out Outcome
	defer func() {
		r := recover()
		if _, stopped := r.(live.Stop); r != nil && !stopped {
			out.Failure = describe(r, c.frame()...)
		}
		finished <- out // also after runtime.Goexit
	}()
	if run != nil {
		run()
	}
}
