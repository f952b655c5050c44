// Package rawpipe reads what processes write to a pipe: bounded, and so that it can be
// drained at a moment, such as a cell's end.
package rawpipe

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Pipe reads the stdout or the stderr of processes: what children, C libraries and a
// runtime write past the protocol. Its goroutine takes what comes into a bounded buffer
// and waits while that is full; Take empties it.
type Pipe struct {
	f  *os.File
	rc syscall.RawConn
	wg sync.WaitGroup

	ready chan struct{} // of one element

	mu     sync.Mutex
	space  *sync.Cond
	buf    []byte
	eof    bool
	closed bool
}

// rawBytes bounds the buffer; pipeBytes is asked for the pipe itself, so that a
// child that writes much waits less often.
const (
	rawBytes  = 512 << 10
	pipeBytes = 256 << 10
	readBytes = 64 << 10
	// leastBytes is what is read at least, where more may come meanwhile.
	leastBytes = 512
)

// New makes a pipe. The writing end is the caller's to give away and to close; Start has
// the Pipe read, and whoever called New closes it.
func New() (*Pipe, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	p, err := Of(r)
	if err != nil {
		r.Close()
		w.Close()
		return nil, nil, err
	}
	return p, w, nil
}

// Of makes a Pipe of the reading end of one that is there, such as a FIFO opened
// without blocking. The Pipe owns the file from then on.
func Of(r *os.File) (*Pipe, error) {
	rc, err := r.SyscallConn()
	if err != nil {
		return nil, err
	}
	_ = rc.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes) })
	p := &Pipe{f: r, rc: rc, ready: make(chan struct{}, 1)}
	p.space = sync.NewCond(&p.mu)
	return p, nil
}

// Start begins to read.
func (p *Pipe) Start() {
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		for {
			more := false
			err := p.rc.Read(func(fd uintptr) bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				for len(p.buf) >= rawBytes && !p.closed {
					p.space.Wait()
				}
				if p.closed || p.eof {
					return true
				}
				n := p.read(int(fd), readBytes)
				more = n > 0
				return n != again
			})
			if err != nil || !more {
				return
			}
		}
	}()
}

const again = -1

// read reads at most n bytes into the buffer; the caller holds mu. It returns how many,
// 0 at the end, again when there is nothing now. Most pipes carry little or nothing, so
// the buffer has room for what is there.
func (p *Pipe) read(fd, n int) int {
	have := len(p.buf)
	if left, err := unix.IoctlGetInt(fd, unix.TIOCINQ); err == nil {
		n = min(n, max(left, leastBytes))
	}
	if cap(p.buf)-have < n {
		grown := make([]byte, have, max(2*cap(p.buf), have+n))
		copy(grown, p.buf)
		p.buf = grown
	}
	for {
		k, err := unix.Read(fd, p.buf[have:have+n])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return again
		case err != nil || k <= 0:
			p.eof = true
			return 0
		}
		p.buf = p.buf[:have+k]
		select {
		case p.ready <- struct{}{}:
		default:
		}
		return k
	}
}

// Ready gets an element when there is something to take.
func (p *Pipe) Ready() <-chan struct{} { return p.ready }

// Ended tells whether all writing ends were closed and what came of it was taken.
func (p *Pipe) Ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.eof && len(p.buf) == 0
}

// Take returns what has come, and makes room. The slice is the caller's.
func (p *Pipe) Take() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.buf
	p.buf = nil
	p.space.Broadcast()
	return b
}

// Drain returns what has come together with what lies in the pipe at this moment: all
// that was written before the call, and no endless writer's later bytes.
func (p *Pipe) Drain() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fill()
	b := p.buf
	p.buf = nil
	p.space.Broadcast()
	return b
}

// Fill takes into the buffer what lies in the pipe at this moment, and returns how much
// that is: for a reader of its own, who calls it in place of Start.
func (p *Pipe) Fill() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fill()
}

// fill is Fill; the caller holds mu.
func (p *Pipe) fill() (n int) {
	if p.closed || p.eof {
		return 0
	}
	_ = p.rc.Control(func(fd uintptr) {
		left, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		for err == nil && left > 0 {
			k := p.read(int(fd), min(left, readBytes))
			if k <= 0 {
				break
			}
			left -= k
			n += k
		}
	})
	return n
}

// Close ends the goroutine and closes the pipe.
func (p *Pipe) Close() {
	p.mu.Lock()
	p.closed = true
	p.space.Broadcast()
	p.mu.Unlock()
	p.f.Close()
	p.wg.Wait()
}
