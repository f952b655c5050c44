package bash

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// copyWithin is how long a copy may take to tell of itself when the shell has ended.
const copyWithin = 2 * time.Second

// promote has the copy take over from a shell that has ended.
func (k *Kernel) promote(gone *goneError) error {
	s := k.shell
	if back := s.takeBack(); strings.Contains(back, "k") {
		s.mu.Lock()
		s.copying = false // it was never made
		s.mu.Unlock()
	}
	for end := time.Now().Add(copyWithin); time.Now().Before(end); time.Sleep(time.Millisecond) {
		s.takeNow()
		s.mu.Lock()
		copying := s.copying
		s.mu.Unlock()
		if !copying {
			break
		}
	}
	s.mu.Lock()
	copy, main := s.copy, s.main
	s.end.pid = 0
	s.end.moved = false
	s.mu.Unlock()
	if copy == 0 {
		return &kernel.DiedError{What: "bash", Status: syscall.WaitStatus(gone.status)}
	}
	if _, err := s.copyIn.WriteString("p\n"); err != nil {
		return err
	}
	bound, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	for {
		s.mu.Lock()
		done := s.main == copy && s.end.pid == copy
		_, dead := s.dead[copy]
		dead = dead || s.main != main && s.main != copy
		s.mu.Unlock()
		if done {
			k.last = k.copied
			return nil
		}
		if dead || bound.Err() != nil || !alive(copy) {
			return &kernel.DiedError{What: "bash", Status: syscall.WaitStatus(gone.status)}
		}
		select {
		case <-s.changed:
		case <-time.After(10 * time.Millisecond):
		case <-bound.Done():
		}
	}
}

func alive(pid int) bool {
	p, ok := procfs.Read(pid)
	return ok && p.State != 'Z' && p.State != 'X'
}

// promoteAndSettle is promote for a shell that ended while no cell ran.
func (k *Kernel) promoteAndSettle(ctx context.Context, err error) (map[int]uint64, error) {
	gone := (*goneError)(nil)
	if !errors.As(err, &gone) {
		return nil, err
	}
	if err := k.promote(gone); err != nil {
		return nil, err
	}
	return k.settled(ctx)
}
