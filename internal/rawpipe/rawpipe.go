// Package rawpipe reads what processes write to their stdout and stderr: bounded, in the
// order in which it came, and so that it can be drained at a moment, such as a cell's end.
package rawpipe

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Pair reads the stdout and the stderr of processes: what children, C libraries and a
// runtime write past the protocol. Its goroutine takes what comes into a bounded buffer
// and waits while that is full; Take empties it.
//
// The two are read in the order in which they got something to read. Of what was written to
// both before it came to reading, each comes as one piece: what goes from one to the other
// once is in order, what goes back and forth may not be.
type Pair struct {
	fds   [2]int   // the pipes' reading ends
	epoll int      // lists those that have something
	file  *os.File // the same, which the goroutine waits for
	wg    sync.WaitGroup

	ready chan struct{} // of one element

	mu     sync.Mutex
	space  *sync.Cond
	pieces []Piece
	held   int // their bytes
	ended  [2]bool
	closed bool
}

// Piece is what came of one of the two before something came of the other: 0 is stdout, 1
// stderr.
type Piece struct {
	Stream int
	Bytes  []byte
}

// rawBytes and rawPieces bound the buffer; pipeBytes is asked for each pipe itself, so that
// a child that writes much waits less often.
const (
	rawBytes  = 512 << 10
	rawPieces = 1 << 10
	pipeBytes = 256 << 10
	// leastBytes is the room that a piece begins with.
	leastBytes = 512
)

// New makes two pipes and begins to read them. The writing ends are the caller's to give
// away and to close, and so is the Pair.
func New() (p *Pair, stdout, stderr *os.File, err error) {
	p = &Pair{fds: [2]int{-1, -1}, ready: make(chan struct{}, 1)}
	p.space = sync.NewCond(&p.mu)
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(fd, true) // which lets the runtime's poller wait for it
	}
	if err != nil {
		return nil, nil, nil, os.NewSyscallError("epoll_create1", err)
	}
	p.epoll, p.file = fd, os.NewFile(uintptr(fd), "epoll")
	var ends [2]*os.File
	for i := range p.fds {
		if ends[i], err = p.open(i); err != nil {
			break
		}
	}
	var conn syscall.RawConn
	if err == nil {
		conn, err = p.file.SyscallConn()
	}
	if err != nil {
		for _, end := range ends {
			end.Close() // of nil it does nothing
		}
		p.Close()
		return nil, nil, nil, err
	}
	p.wg.Add(1)
	go p.run(conn)
	return p, ends[0], ends[1], nil
}

// open makes one of the pipes, and returns its writing end.
func (p *Pair) open(i int) (*os.File, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	p.fds[i] = fds[0]
	end := os.NewFile(uintptr(fds[1]), "|1")
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeBytes)
	err := unix.SetNonblock(fds[0], true)
	if err == nil {
		err = p.list(unix.EPOLL_CTL_ADD, i)
	}
	if err != nil {
		end.Close()
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	return end, nil
}

// list has the epoll list a pipe whenever something is written to it, behind what is listed
// already, and now if there is something.
func (p *Pair) list(op, i int) error {
	return unix.EpollCtl(p.epoll, op, p.fds[i], &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(i)})
}

func (p *Pair) run(conn syscall.RawConn) {
	defer p.wg.Done()
	for {
		err := conn.Read(func(uintptr) bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			for (p.held >= rawBytes || len(p.pieces) >= rawPieces) && !p.closed {
				p.space.Wait()
			}
			return p.closed || p.round()
		})
		if err != nil { // closed
			return
		}
	}
}

// round reads what the pipes have, of that first which had something first. False: there is
// nothing. The caller holds mu.
func (p *Pair) round() bool {
	var events [2]unix.EpollEvent
	n, _ := unix.EpollWait(p.epoll, events[:], 0)
	for _, e := range events[:max(n, 0)] {
		i := int(e.Fd)
		got, hup := p.read(i), e.Events&unix.EPOLLHUP != 0
		// What came while it was read is listed, which this does not change, except that Linux
		// 5.5 to 5.13 lists nothing that is written to a pipe which is not empty.
		if got == 0 && hup {
			p.ended[i] = true
		} else if hup || p.left(i) > 0 {
			_ = p.list(unix.EPOLL_CTL_MOD, i)
		}
	}
	return n > 0
}

// read reads what lies in a pipe at this moment, and returns how many bytes: all, or what
// came of the other since would come before the rest. Most pipes carry little or nothing, so
// the buffer has room for what is there.
func (p *Pair) read(i int) (n int) {
	left := min(p.left(i), pipeBytes) // a cell may have made the pipe larger
	if left <= 0 {
		return 0
	}
	if last := len(p.pieces) - 1; last < 0 || p.pieces[last].Stream != i {
		p.pieces = append(p.pieces, Piece{Stream: i})
	}
	piece := &p.pieces[len(p.pieces)-1]
	if have := len(piece.Bytes); cap(piece.Bytes)-have < left {
		grown := make([]byte, have, max(2*cap(piece.Bytes), have+max(left, leastBytes)))
		copy(grown, piece.Bytes)
		piece.Bytes = grown
	}
	for n < left {
		have := len(piece.Bytes)
		k, err := unix.Read(p.fds[i], piece.Bytes[have:have+left-n])
		if err == unix.EINTR {
			continue
		}
		if err != nil || k <= 0 {
			break
		}
		piece.Bytes = piece.Bytes[:have+k]
		n += k
	}
	p.held += n
	select {
	case p.ready <- struct{}{}:
	default:
	}
	return n
}

// left is how much lies in a pipe.
func (p *Pair) left(i int) int {
	n, err := unix.IoctlGetInt(p.fds[i], unix.TIOCINQ)
	if err != nil {
		return 0
	}
	return n
}

// Ready gets an element when there is something to take.
func (p *Pair) Ready() <-chan struct{} { return p.ready }

// Ended tells whether all writing ends were closed and what came of them was taken.
func (p *Pair) Ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended[0] && p.ended[1] && p.held == 0
}

// Take returns what has come, and makes room. It is the caller's.
func (p *Pair) Take() []Piece {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.take()
}

func (p *Pair) take() []Piece {
	pieces := p.pieces
	p.pieces, p.held = nil, 0
	p.space.Broadcast()
	return pieces
}

// Drain returns what has come together with what lies in the pipes at this moment: all
// that was written before the call, and no endless writer's later bytes.
func (p *Pair) Drain() []Piece {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.round()
	}
	return p.take()
}

// Close ends the goroutine and closes the pipes: who still writes gets SIGPIPE.
func (p *Pair) Close() {
	p.mu.Lock()
	closed := p.closed
	p.closed = true
	p.space.Broadcast()
	p.mu.Unlock()
	if closed {
		return
	}
	p.file.Close()
	p.wg.Wait()
	for _, fd := range p.fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
