package supervisor

import (
	"syscall"
	"time"

	"github.com/cellard/cellard/internal/procfs"
)

// sweep is how far it has come that what a stopped cell has started ends.
type sweep struct {
	from  time.Time // when the kernel was through with the cell, and had left processes
	next  time.Time // when swept looks again
	kills int       // how often SIGKILL was sent
}

// Nothing of a stopped cell goes on: of what it has started, what the interrupt has not ended
// gets SIGTERM sweepAfter later, and SIGKILL as much later again. So does a kernel of our own,
// before it replies. What nothing can end is left sweepMost after the kernel was through with
// the cell.
const (
	sweepAfter = 200 * time.Millisecond
	sweepEvery = 10 * time.Millisecond
	sweepMost  = 3 * sweepAfter
	sweepKills = 10                    // at the least, however slow the machine is
	sweepRush  = 50 * time.Millisecond // how long killAll kills without a pause
)

// swept reports whether nothing is left of what a stopped cell has started that could be
// ended; else it is to be asked again at c.stop.sweep.next. The kernel is through with the cell.
func (s *session) swept(c *cell) bool {
	born := s.k.bornSince(c.born)
	if len(born) == 0 && s.noneBorn(c.born) {
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
		s.killAll(c.born)
		w.kills++
	case past >= sweepAfter:
		s.k.signalBorn(c, syscall.SIGTERM, nil)
	}
	w.next = now.Add(sweepEvery)
	return false
}

// noneBorn tells for certain that there is nothing that the kernel has started since. What forks
// another and ends, again and again, can be missed unless it stands still, or is looked for
// with care.
func (s *session) noneBorn(since procfs.Moment) bool {
	if s.k.launch.Own {
		return true
	}
	if s.k.group == nil {
		_, none := s.look(since)
		return none
	}
	var born []procfs.Stat
	s.k.group.Frozen(func() { born = s.k.bornSince(since) })
	return len(born) == 0
}

// look is bornSince for where there are no groups, by procfs.Look.
func (s *session) look(since procfs.Moment) (born []procfs.Stat, none bool) {
	s.m.spawn.mu.Lock()
	defer s.m.spawn.mu.Unlock()
	return procfs.Look(func(p procfs.Stat, child bool) procfs.Kind {
		switch {
		case p.PID == s.k.Pid() || s.k.helper(p):
			return procfs.Part
		case !since.Before(p) || child && p.State != 'Z' && p.Session != s.k.Pid() && !procfs.HasMark(p.PID, s.k.mark):
			return procfs.Other
		}
		return procfs.Sought // or an orphan that has ended: nobody knows whose it was
	}, s.m.spawn.wait)
}

// killAll kills what the kernel has started since while it stands still. Without a group that
// is looked for again and again, as what leaves its process group is hard to meet.
func (s *session) killAll(since procfs.Moment) {
	s.k.killBorn(since)
	for end := time.Now().Add(sweepRush); s.k.group == nil && !s.k.launch.Own && time.Now().Before(end); {
		born, none := s.look(since)
		if none {
			return
		}
		if p, ok := procfs.Read(s.k.Pid()); ok { // most are in its group, and might not be seen
			born = append(born, p)
		}
		procfs.KillHalted(born, func() []procfs.Stat {
			born, _ := s.look(since)
			return born
		})
	}
}
