package bash

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/procfs"
)

// The steps of an interrupt, counted from it.
const (
	stopTerm  = 150 * time.Millisecond
	stopKill  = 400 * time.Millisecond
	stopShell = 2500 * time.Millisecond
	stopMost  = 8 * time.Second
	stopAgain = 10 * time.Millisecond
)

// standWithin is how long a shell is given to stand still. One that doesn't is left for the
// next time.
const standWithin = 100 * time.Millisecond

// stop stops a cell: the shell by the reserved signal, whose trap exits, and what was born
// in the cell by SIGINT, SIGTERM and SIGKILL. The signal is sent until it has effect, for it
// has none on a shell that is about to begin with the cell. A shell that goes on gets
// SIGINT, then SIGKILL: the copy takes over.
func (k *Kernel) stop(over func() bool, born procfs.Moment, cause error) error {
	s := k.shell
	begin := time.Now()
	ending := procfs.Ending{}
	interrupted := false
	s.mu.Lock()
	first := s.took
	s.mu.Unlock()
	for {
		since := time.Since(begin)
		if since > stopMost {
			return fmt.Errorf("bash: the cell can't be stopped, not even by SIGKILL")
		}
		s.takeNow()
		s.mu.Lock()
		main, handing := s.main, s.handing != 0
		took, copying := s.took, s.copying
		_, gone := s.dead[main]
		dying := len(s.dying)
		if since >= stopShell {
			for pid := range s.dying { // its EXIT trap doesn't end
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		s.mu.Unlock()
		if !handing && !gone {
			switch {
			case since >= stopShell && dying == 0:
				k.killShell(main)
			case took != first: // its copy has nothing to do but to tell of the end
			default:
				_ = unix.Kill(main, unix.SIGUSR2)
				if since >= stopKill+stopTerm && !interrupted {
					interrupted = true
					_ = unix.Kill(main, unix.SIGINT)
				}
				_ = unix.Kill(main, unix.SIGCONT)
			}
		}
		if since >= 3*time.Millisecond && !copying || since >= stopTerm {
			sig := unix.SIGINT
			if since >= stopKill {
				sig = unix.SIGKILL
			} else if since >= stopTerm {
				sig = unix.SIGTERM
			}
			k.signal(born, sig, &ending)
		}
		pause := stopAgain
		if since > stopKill {
			pause *= 5
		}
		bound, cancel := context.WithTimeout(context.Background(), pause)
		err := k.await(bound, over)
		cancel()
		if err == nil {
			return cause
		}
		if gone := (*goneError)(nil); errors.As(err, &gone) {
			return err
		}
	}
}

// killShell kills a shell that goes on, unless it is about to hand over.
func (k *Kernel) killShell(pid int) {
	_ = unix.Kill(pid, unix.SIGSTOP)
	if procfs.Stands(pid, standWithin) {
		k.shell.takeNow()
		k.shell.mu.Lock()
		defer k.shell.mu.Unlock()
		if k.shell.handing == 0 && k.shell.main == pid {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	_ = unix.Kill(pid, unix.SIGCONT)
}

// signal signals the processes that were born since, but the shells. While the shell may
// be forking its copy it is stopped, and it has told before whether it does.
func (k *Kernel) signal(born procfs.Moment, sig unix.Signal, ending *procfs.Ending) {
	s := k.shell
	s.mu.Lock()
	main := s.main
	s.mu.Unlock()
	_ = unix.Kill(main, unix.SIGSTOP)
	defer func() { _ = unix.Kill(main, unix.SIGCONT) }()
	if !procfs.Stands(main, standWithin) {
		return
	}
	s.takeNow()
	s.mu.Lock()
	wait := s.handing != 0 || s.main != main
	spare := map[int]bool{s.main: true, s.copy: true}
	for pid := range s.dying {
		spare[pid] = true
	}
	s.mu.Unlock()
	if wait {
		return
	}
	look := func() []procfs.Stat { return k.reaper.Born(born, func(pid int) bool { return spare[pid] }) }
	ending.Signal(sig, look(), nil, look, nil)
}

// endChildren ends what is left of an interrupted cell. A copy that the cell before asked for
// may be born only now, and is none of it once it has told of itself.
func (k *Kernel) endChildren(born procfs.Moment) {
	bound, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = k.await(bound, func() bool { return !k.shell.copying })
	k.reaper.End(born, func(pid int) bool {
		k.shell.takeNow()
		k.shell.mu.Lock()
		defer k.shell.mu.Unlock()
		return pid == k.shell.main || pid == k.shell.copy || k.shell.dying[pid]
	}, nil)
}
