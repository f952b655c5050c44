package supervisor

import (
	"fmt"
	"syscall"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/api"
)

// why a cell is being stopped.
type why int

const (
	whyTimeout why = iota
	whyInterrupt
	whyNoInput
	whyShutdown
)

func (w why) String() string {
	return [...]string{whyTimeout: "timeout", whyInterrupt: "interrupt", whyNoInput: "no input", whyShutdown: "shutdown"}[w]
}

// stop is the ladder that a cell is being stopped by.
type stop struct {
	why   why
	from  time.Time
	rung  int
	sweep sweep // once the kernel is through with the cell

	ending procfs.Ending // of what the cell has started
}

// rung is a step of the ladder: what is done, and how long after its beginning.
type rung struct {
	after time.Duration
	do    func(k *kernel, c *cell)
}

// ladder is what is tried, one after another, before the kill: the interrupt as the
// kernelspec says, to the kernel and to what this cell started; the nudge; both
// again, for code that swallowed the first; and, for children that ignore an
// interrupt and that the kernel waits for, SIGTERM and SIGKILL; the other end of a FIFO
// that it waits for. The kill itself comes at Options.InterruptGrace.
var ladder = []rung{
	{0, func(k *kernel, c *cell) { _ = k.interrupt(c) }},
	{200 * time.Millisecond, func(k *kernel, _ *cell) { k.nudge() }},
	{time.Second, func(k *kernel, c *cell) { _ = k.interrupt(c); k.nudge() }},
	{1500 * time.Millisecond, func(k *kernel, c *cell) { k.signalBorn(c, syscall.SIGTERM, nil) }},
	{2 * time.Second, func(k *kernel, c *cell) { _ = k.interrupt(c); k.nudge() }},
	{2500 * time.Millisecond, func(k *kernel, c *cell) { k.killBorn(c.born) }},
	{3 * time.Second, func(k *kernel, _ *cell) { k.releaseFIFO() }},
	{4 * time.Second, func(k *kernel, c *cell) { _ = k.interrupt(c); k.nudge() }},
	{7 * time.Second, func(k *kernel, c *cell) { _ = k.interrupt(c); k.nudge() }},
}

// releaseFIFO is for a kernel that runs cells itself; those of our own look after theirs.
func (k *kernel) releaseFIFO() {
	if !k.launch.Own {
		procfs.ReleaseFIFO(k.Pid())
	}
}

// stopCell begins the ladder, unless the cell is on it already.
func (s *session) stopCell(w why) {
	c := s.cur
	if c == nil || c.stop != nil {
		return
	}
	c.stop = &stop{why: w, from: time.Now()}
	s.about(c.e).Debug("a cell is stopped", "generation", s.gen, "why", w.String())
	s.climb(c)
}

// climb does the rungs that are due; past the last one is the kill.
func (s *session) climb(c *cell) {
	since := time.Since(c.stop.from)
	for c.stop.rung < len(ladder) && ladder[c.stop.rung].after <= since && ladder[c.stop.rung].after < s.m.o.InterruptGrace {
		ladder[c.stop.rung].do(s.k, c)
		c.stop.rung++
	}
	if since >= s.m.o.InterruptGrace {
		s.kill(&api.Lost{Reason: api.LostUnresponsive,
			Message: fmt.Sprintf("the cell did not stop within %v of its interrupt, and the kernel was killed", s.m.o.InterruptGrace)})
	}
}

// stopped is the ending of a cell that was on the ladder and whose kernel lives. An
// interrupted cell may reply anything, ok too: what it came to is known here.
func (s *session) stopped(c *cell, end *execution.Ending, raised *api.CellError) {
	switch c.stop.why {
	case whyTimeout:
		end.Status = api.StatusTimeout
		if raised == nil {
			end.Error = &api.CellError{Name: "Timeout", Value: fmt.Sprintf("the cell was stopped at its deadline of %d ms", c.timeout.Milliseconds())}
		}
	case whyInterrupt:
		end.Status = api.StatusInterrupted
		if raised == nil {
			end.Error = &api.CellError{Name: "Interrupted", Value: "the cell was interrupted"}
		}
	case whyNoInput:
		end.Status = api.StatusError
		end.Error = &api.CellError{Name: "StdinNotImplementedError",
			Value: `the cell asked for input and no answer is left; send more in "stdin", or "live"`}
	}
}
