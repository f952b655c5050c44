package procfs

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Ending ends processes by signals so that none of them sees another end and goes on with
// what comes next: the signals are sent while all stand still (SIGSTOP). A shell waits for its
// command; where that is ended and the shell is not, as one in the background ignores SIGINT,
// it would run the next command.
//
// So what ignores a signal gets the next harder one at once: SIGTERM for SIGINT, SIGKILL for
// SIGTERM. Only below a process that catches the signal and still lives it waits, with what is
// below it: that one may be a shell which takes a command that SIGTERM has ended for one that
// has dealt with SIGINT, and goes on.
//
// The zero value is ready. It is for one goroutine at a time.
type Ending struct {
	sent map[life]unix.Signal
}

// life tells a process from a later one with its number.
type life struct {
	pid   int
	start uint64
}

func (p Stat) life() life { return life{p.PID, p.Start} }

// How long all are given to stand still: one that waits for a device can't, nor one whose
// child by vfork stands.
const (
	standEach = 5 * time.Millisecond
	standAll  = 100 * time.Millisecond
)

// settle is how long those that wait for others to end stand still meanwhile.
const settle = 20 * time.Millisecond

// Signal sends a signal (SIGINT, SIGTERM or SIGKILL) to those that were found, and to what look
// finds of them while they stand, unless they have got it, or a harder one. Those of around
// stand still meanwhile, too: a shell with job control that waits for a child that is stopped
// goes on. What first does is done while all stand, before the signals; nil is nothing.
func (e *Ending) Signal(sig unix.Signal, found, around []Stat, look func() []Stat, first func()) {
	if e.sent == nil {
		e.sent = map[life]unix.Signal{}
	}
	if first == nil {
		first = func() {}
	}
	plan, _ := e.plan(sig, found, nil)
	if len(plan) == 0 {
		first()
		return
	}
	stood := stand(found, around, look)
	first()
	all := look()
	plan, held := e.plan(sig, all, nil)
	e.send(plan)
	// Children first: no parent that waits for stopped children sees one.
	goOn := func(these func(p Stat) bool) {
		for i, p := range slices.Backward(stood) {
			if these(p) {
				_ = unix.Kill(p.PID, unix.SIGCONT)
				stood = slices.Delete(stood, i, i+1)
			}
		}
	}
	goOn(func(p Stat) bool { return !held[p.life()] })
	for end := time.Now().Add(settle); len(held) > 0 && time.Now().Before(end); {
		time.Sleep(settle / 20)
		plan, held = e.plan(sig, look(), held)
		e.send(plan)
	}
	goOn(func(Stat) bool { return true })
}

// send sends signals, which what is stopped takes when it goes on.
func (e *Ending) send(plan []step) {
	for _, s := range plan {
		e.sent[s.to.life()] = s.sig
		s.send()
	}
	for _, s := range slices.Backward(plan) {
		_ = unix.Kill(s.to.PID, unix.SIGCONT)
	}
}

// stand has processes, and what look finds besides, stand still, parents first. It returns
// those that have not been stopped before, in the order in which they came to stand.
func stand(found, around []Stat, look func() []Stat) (stood []Stat) {
	by := time.Now().Add(standAll)
	seen := map[int]bool{}
	for more := true; more; { // who forks has children that are not in the list
		more = false
		for _, p := range append(around[:len(around):len(around)], fromTop(found)...) {
			if !seen[p.PID] {
				seen[p.PID], more = true, true
				if p.State != 'T' && unix.Kill(p.PID, unix.SIGSTOP) == nil {
					stood = append(stood, p)
					Stands(p.PID, min(standEach, time.Until(by)))
				}
			}
		}
		if more = more && time.Now().Before(by); more {
			found = look()
		}
	}
	return stood
}

// Repeat has SIGINT be sent once more to those that have got just that.
func (e *Ending) Repeat() {
	for p, sig := range e.sent {
		if sig == unix.SIGINT {
			delete(e.sent, p)
		}
	}
}

// fromTop has parents before their children.
func fromTop(all []Stat) []Stat {
	parent := map[int]int{}
	for _, p := range all {
		parent[p.PID] = p.Parent
	}
	depth := map[int]int{}
	for _, p := range all {
		for up, ok := parent[p.PID]; ok && depth[p.PID] < len(all); up, ok = parent[up] {
			depth[p.PID]++
		}
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Stat) int { return depth[a.PID] - depth[b.PID] })
	return all
}

// Stands waits until a process that was sent SIGSTOP does nothing more, or has ended, and
// reports whether that came within the time. One that is not scheduled takes long.
func Stands(pid int, within time.Duration) bool {
	for end := time.Now().Add(within); ; time.Sleep(30 * time.Microsecond) {
		p, ok := Read(pid)
		if !ok || strings.IndexByte("TtZX", p.State) >= 0 {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// step is a signal that is to be sent.
type step struct {
	to    Stat
	sig   unix.Signal
	first bool // its first thread takes the signal
}

// send sends the signal to the first thread, if that takes it: of a process that stands, any
// thread would take one that is sent to the process. Python, for one, has to be met in the
// first, whose wait a signal is to end.
func (s step) send() {
	if s.first && s.sig != unix.SIGKILL && s.to.State != 'Z' {
		_ = unix.Tgkill(s.to.PID, s.to.PID, s.sig)
		return
	}
	_ = unix.Kill(s.to.PID, s.sig)
}

// plan is what to send to whom, and who has to wait; of only some, if that isn't nil.
func (e *Ending) plan(sig unix.Signal, all []Stat, only map[life]bool) (plan []step, held map[life]bool) {
	held = map[life]bool{}
	among, does := map[int]Stat{}, map[int]actions{}
	for _, p := range all {
		among[p.PID], does[p.PID] = p, actionsOf(p.PID)
	}
	for _, p := range all {
		if only != nil && !only[p.life()] {
			continue
		}
		if sig != unix.SIGKILL && waits(p, sig, among, does) {
			held[p.life()] = true
			continue
		}
		to := does[p.PID].least(sig)
		if to == unix.SIGKILL || rank(to) > rank(e.sent[p.life()]) {
			plan = append(plan, step{p, to, does[p.PID].takes(to)})
		}
	}
	return plan, held
}

// waits tells whether between a process and the top there is one, or it itself, that ignores
// the signal, below one that catches it.
func waits(p Stat, sig unix.Signal, among map[int]Stat, does map[int]actions) bool {
	ignored := false
	for range len(among) {
		if ignored = ignored || does[p.PID].ignored(sig); ignored && does[among[p.Parent].PID].catches(sig) {
			return true
		}
		up, ok := among[p.Parent]
		if !ok {
			return false
		}
		p = up
	}
	return false
}

// Interrupt sends a process SIGINT or, where it ignores that and catches the other, the other;
// 0 is none. To tell, it stands still meanwhile, unless it did already.
func Interrupt(p Stat, other unix.Signal) {
	stood := p.State == 'T'
	if other == 0 && !stood {
		_ = unix.Kill(p.PID, unix.SIGINT)
		return
	}
	if !stood && unix.Kill(p.PID, unix.SIGSTOP) == nil {
		Stands(p.PID, standEach)
		defer func() { _ = unix.Kill(p.PID, unix.SIGCONT) }()
	}
	sig, a := unix.SIGINT, actionsOf(p.PID)
	if other != 0 && a.ignored(sig) && a.catches(other) {
		sig = other
	}
	step{p, sig, a.takes(sig)}.send()
}

func rank(sig unix.Signal) int {
	switch sig {
	case unix.SIGINT:
		return 1
	case unix.SIGTERM:
		return 2
	case unix.SIGKILL:
		return 3
	}
	return 0
}

// actions are what a process does at signals, and what its first thread blocks.
type actions struct{ ignore, catch, block uint64 }

func (a actions) ignored(sig unix.Signal) bool { return a.ignore>>(sig-1)&1 != 0 }
func (a actions) catches(sig unix.Signal) bool { return a.catch>>(sig-1)&1 != 0 }

func (a actions) takes(sig unix.Signal) bool { return a.block>>(sig-1)&1 == 0 }

// least is the mildest signal from sig on that is not ignored.
func (a actions) least(sig unix.Signal) unix.Signal {
	if sig == unix.SIGINT && a.ignored(sig) {
		sig = unix.SIGTERM
	}
	if sig == unix.SIGTERM && a.ignored(sig) {
		sig = unix.SIGKILL
	}
	return sig
}

func actionsOf(pid int) (a actions) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return a
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		mask, _ := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		switch name {
		case "SigBlk":
			a.block = mask
		case "SigIgn":
			a.ignore = mask
		case "SigCgt":
			a.catch = mask
		}
	}
	return a
}
