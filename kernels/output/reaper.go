package output

import (
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/procfs"
)

// Reaper makes this process the parent of the interpreter's orphans (a subreaper), so
// that what a cell starts can be found, and waits for them. Processes that the kernel
// itself waits for are started by it: it waits for all others.
type Reaper struct {
	stop chan struct{}
	wg   sync.WaitGroup

	mu  sync.Mutex // held over a start and its entry, and over a reaping
	own map[int]bool
}

// again is when children are looked for a second time: the list of them can miss one
// while others come and go (proc(5), children).
const again = 200 * time.Millisecond

// NewReaper makes the Reaper; there is one in a process.
func NewReaper() *Reaper {
	// Where it fails (Linux before 3.4), orphans go to init, and are found by their
	// session alone.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	r := &Reaper{stop: make(chan struct{}), own: make(map[int]bool)}
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		defer signal.Stop(died)
		var later <-chan time.Time
		for {
			select {
			case <-died:
				r.reap()
				later = time.After(again)
			case <-later:
				r.reap()
			case <-r.stop:
				r.reap()
				return
			}
		}
	}()
	return r
}

// Start starts a command that the caller waits for by Wait.
func (r *Reaper) Start(c *exec.Cmd) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := c.Start(); err != nil {
		return err
	}
	r.own[c.Process.Pid] = true
	return nil
}

// Wait waits for a command that Start has started.
func (r *Reaper) Wait(c *exec.Cmd) error {
	err := c.Wait()
	r.mu.Lock()
	delete(r.own, c.Process.Pid)
	r.mu.Unlock()
	return err
}

// Run starts a command and waits for it.
func (r *Reaper) Run(c *exec.Cmd) error {
	if err := r.Start(c); err != nil {
		return err
	}
	return r.Wait(c)
}

// Own keeps a process that is not a child yet, or was not started by Start, from being
// waited for by the Reaper, so that WaitFor can tell how it ended.
func (r *Reaper) Own(pid int) {
	r.mu.Lock()
	r.own[pid] = true
	r.mu.Unlock()
}

// WaitFor waits for the end of a process that Own was told of, or one of Start's that
// was released, and returns its status. Where that is another's to know it is 0.
func (r *Reaper) WaitFor(pid int) (status unix.WaitStatus) {
	awaitEnd(pid)
	_, _ = unix.Wait4(pid, &status, unix.WNOHANG, nil)
	r.mu.Lock()
	delete(r.own, pid)
	r.mu.Unlock()
	return status
}

// awaitEnd waits until a process has ended, whose child it may be.
func awaitEnd(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return
	}
	if err == nil {
		err = unix.SetNonblock(fd, true) // which lets the runtime's poller wait
		f := os.NewFile(uintptr(fd), "pidfd")
		defer f.Close()
		var conn syscall.RawConn
		if err == nil {
			conn, err = f.SyscallConn()
		}
		if err == nil {
			err = conn.Read(func(fd uintptr) bool {
				n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
				return n > 0 || err != nil && err != unix.EINTR
			})
		}
		if err == nil {
			return
		}
	}
	for { // Linux before 5.3
		if p, ok := procfs.Read(pid); !ok || p.State == 'Z' || p.State == 'X' {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (r *Reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wait(procfs.Children(os.Getpid()))
}

// wait waits for those children that have ended, but its own. The caller holds the lock.
func (r *Reaper) wait(children []procfs.Stat) {
	for _, p := range children {
		if p.State == 'Z' && !r.own[p.PID] {
			_, _ = unix.Wait4(p.PID, nil, unix.WNOHANG, nil)
		}
	}
}

// Close ends the Reaper. Orphans that are left are killed.
func (r *Reaper) Close() {
	r.End(procfs.Moment{}, nil, nil)
	close(r.stop)
	r.wg.Wait()
}

// Born are the processes that came from this one since a moment, but the spared, and what
// they have started. Those that were started by Start are none of them, nor is what a
// process starts that was there before. Some can be missed: see look.
func (r *Reaper) Born(since procfs.Moment, spare func(pid int) bool) []procfs.Stat {
	born, _ := r.look(since, spare)
	return born
}

// look is Born. none tells for certain that there is nothing: see procfs.Look.
func (r *Reaper) look(since procfs.Moment, spare func(pid int) bool) (born []procfs.Stat, none bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return procfs.Look(func(p procfs.Stat, _ bool) procfs.Kind {
		switch {
		case r.own[p.PID] || spare != nil && spare(p.PID):
			return procfs.Part
		case since.Before(p):
			return procfs.Sought
		}
		return procfs.Other
	}, r.wait)
}

// owned are the living processes that were started by Start: most of what they start is in
// their process groups.
func (r *Reaper) owned() (found []procfs.Stat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for pid := range r.own {
		if p, ok := procfs.Read(pid); ok {
			found = append(found, p)
		}
	}
	return found
}

// The steps of End.
const (
	endTerm = 150 * time.Millisecond
	endKill = 400 * time.Millisecond
	endMost = 3 * time.Second
	endLook = 5 * time.Millisecond
)

// End ends the processes that came from this one since a moment, but the spared:
// SIGINT, and for those that stay SIGTERM and SIGKILL, in the way of procfs.Ending. It
// returns when none is left, when enough is closed, or within 3 s (a process that waits
// for a device can't be killed).
func (r *Reaper) End(since procfs.Moment, spare func(pid int) bool, enough <-chan struct{}) {
	begin := time.Now()
	ending, killed := procfs.Ending{}, map[int]bool{}
	for time.Since(begin) < endMost {
		sig := unix.SIGINT
		switch t := time.Since(begin); {
		case t >= endKill:
			sig = unix.SIGKILL
		case t >= endTerm:
			sig = unix.SIGTERM
		}
		born, none := r.look(since, spare)
		if none {
			return
		}
		look := func() []procfs.Stat { return r.Born(since, spare) }
		pause := endLook
		if sig == unix.SIGKILL { // those that fork all the time are met only while they stand
			procfs.KillHalted(append(born, r.owned()...), look)
			for _, p := range born {
				if !killed[p.PID] {
					killed[p.PID] = true
					_ = unix.Kill(p.PID, sig)
					pause = 0 // it may just have forked: only who is quick gets both
				}
			}
		} else {
			ending.Signal(sig, born, nil, look, nil)
		}
		select {
		case <-time.After(pause):
		case <-enough:
			return
		}
	}
}
