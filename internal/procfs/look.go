package procfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// Kind is what a process is to Look.
type Kind int

const (
	Other  Kind = iota // is left out, and what is below it
	Part               // is left out, but not what is below it
	Sought             // is found, with what is sought below it
)

// Look finds living processes below this one, which adopts orphans (a subreaper). kind
// tells what each is, and whether it is a child of this process; reap is to wait for those
// of the children that have ended. Nobody else waits for them meanwhile.
//
// Some can be missed, but none tells for certain that there is nothing. A process that forks
// another and ends, again and again, is hard to see: its child becomes one of this process.
// So these are listed last; and where one of them had ended, its own may have come after.
func Look(kind func(p Stat, child bool) Kind, reap func(children []Stat)) (found []Stat, none bool) {
	self := os.Getpid()
	seen := map[int]bool{}
	none = true
	var walk func(children []Stat, child, deep bool)
	walk = func(children []Stat, child, deep bool) {
		for _, p := range children {
			if seen[p.PID] {
				continue
			}
			is := kind(p, child)
			if is == Sought {
				none = none && deep // listed last there was none
				if p.State == 'Z' || p.State == 'X' {
					continue
				}
				none = false
				found = append(found, p)
			}
			if seen[p.PID] = true; deep && is != Other {
				walk(Children(p.PID), false, true)
			}
		}
	}
	first := Children(self)
	walk(first, true, true)
	reap(first)
	walk(Children(self), true, false)
	return found, none
}

// KillHalted kills what look finds while the process groups of these stand still (SIGSTOP),
// with all that is in them, which then go on. No process of theirs forks meanwhile: a signal
// to a group meets those that are being born, too (the kernel's fork begins anew where one
// waits, since Linux 4.19 by delivering it to the child). So what can't be met one by one can
// be killed. The group of this process goes on, and who leaves its group again and again may
// not be met.
func KillHalted(of []Stat, look func() []Stat) {
	own := unix.Getpgrp()
	halted := map[int]bool{}
	for _, p := range of {
		if g := p.Group; g > 1 && g != own && !halted[g] && unix.Kill(-g, unix.SIGSTOP) == nil {
			halted[g] = true
		}
	}
	for _, p := range look() {
		_ = unix.Kill(p.PID, unix.SIGKILL)
	}
	for g := range halted {
		_ = unix.Kill(-g, unix.SIGCONT)
	}
}
