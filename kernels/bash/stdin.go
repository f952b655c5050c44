package bash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/procfs"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// It is looked again and again whether somebody waits for input, for nothing tells: after
// askSoon where a line was just given, less and less often where none is asked for.
const (
	askSoon = 10 * time.Millisecond
	askLate = 50 * time.Millisecond
)

// openStdin is what a cell has as its stdin: nothing, or a pipe whose lines are asked
// for when a process of the cell waits for one. The function ends that.
func (k *Kernel) openStdin(ctx context.Context, r *running) (path string, end func(), err error) {
	if !r.cell.AllowStdin {
		return os.DevNull, func() {}, nil
	}
	in, out, err := os.Pipe()
	if err != nil {
		return "", nil, fmt.Errorf("bash: a pipe for stdin: %w", err)
	}
	inode := inodeOf(in)
	asking, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		defer out.Close() // what is read after that ends
		k.ask(asking, r, in, out, inode)
	}()
	return procPath(in), func() {
		cancel()
		wg.Wait()
		in.Close()
	}, nil
}

// ask asks for a line each time that a process waits for one, until there is none.
func (k *Kernel) ask(ctx context.Context, r *running, in, out *os.File, inode uint64) {
	pause := askSoon
	again := time.NewTimer(pause)
	defer again.Stop()
	for ; ; again.Reset(pause) {
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
		if left, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCINQ); err != nil || left > 0 {
			continue
		}
		began := time.Now()
		waits := k.waits(inode)
		if !waits {
			// Those of a cell that has thousands of processes take long to look through:
			// the CPU is the cell's.
			pause = max(min(pause*5/4, askLate), 20*time.Since(began))
			continue
		}
		pause = askSoon
		r.streams.Drain() // what it is asked with
		r.mu.Lock()
		prompt, secret := r.prompt, r.secret
		r.prompt, r.secret = "", false
		r.mu.Unlock()
		line, err := r.cell.Input(ctx, prompt, secret)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, kernel.ErrStdinNotAllowed) {
				r.cell.Stderr(err.Error() + "\n")
			}
			return
		}
		_ = unix.SetNonblock(int(out.Fd()), false)
		if _, err := out.WriteString(line + "\n"); err != nil {
			return
		}
	}
}

// waits tells whether a process of this kernel's waits in a read of that pipe.
func (k *Kernel) waits(inode uint64) bool {
	for _, p := range procfs.Descendants(os.Getpid()) {
		if p.State != 'S' {
			continue
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", p.PID))
		if err != nil {
			continue
		}
		f := strings.Fields(string(b))
		if len(f) < 3 {
			continue
		}
		number, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			continue
		}
		first, _ := strconv.ParseUint(f[1], 0, 64)
		fd := -1
		switch number {
		case unix.SYS_READ, unix.SYS_READV:
			fd = int(first)
		case unix.SYS_PSELECT6, sysSelect: // of one descriptor: Python's readline
			if first == 1 {
				fd = 0
			}
		}
		var st unix.Stat_t
		if fd >= 0 && unix.Stat(fmt.Sprintf("/proc/%d/fd/%d", p.PID, fd), &st) == nil && st.Ino == inode {
			return true
		}
	}
	return false
}
