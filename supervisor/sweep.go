package supervisor

import (
	"syscall"
	"time"
)

// sweep is how far it has come that what a stopped cell has started ends.
type sweep struct {
	from  time.Time    // when the kernel was through with the cell, and had left processes
	next  time.Time    // when swept looks again
	kills int          // how often SIGKILL was sent
	told  map[int]bool // processes that have SIGTERM: many take a second one for haste
}

// Nothing of a stopped cell goes on: of what it has started, what ignores the interrupt
// gets SIGTERM sweepAfter later, and SIGKILL as much later again. So does a kernel of our own,
// before it replies. What nothing can end is left sweepMost after
// the kernel was through with the cell.
const (
	sweepAfter = 200 * time.Millisecond
	sweepEvery = 10 * time.Millisecond
	sweepMost  = 3 * sweepAfter
	sweepKills = 3 // at the least, however slow the machine is
)

// swept reports whether nothing is left of what a stopped cell has started that could be
// ended; else it is to be asked again at c.stop.sweep.next. The kernel is through with the cell.
func (s *session) swept(c *cell) bool {
	born := s.k.bornSince(c.born)
	if len(born) == 0 {
		return true
	}
	w, now := &c.stop.sweep, time.Now()
	if w.from.IsZero() {
		w.from = now
	}
	switch past := now.Sub(w.from); {
	case past >= sweepMost && w.kills >= sweepKills:
		s.about(c.e).Warn("a process that the stopped cell has started does not end", "generation", s.gen)
		return true
	case past >= 2*sweepAfter:
		s.k.killBorn(c.born)
		w.kills++
	case past >= sweepAfter:
		if w.told == nil {
			w.told = map[int]bool{}
		}
		for _, p := range born {
			if !w.told[p.PID] {
				w.told[p.PID] = true
				_ = syscall.Kill(p.PID, syscall.SIGTERM)
				_ = syscall.Kill(p.PID, syscall.SIGCONT) // one that was stopped takes nothing else
			}
		}
	}
	w.next = now.Add(sweepEvery)
	return false
}
