package output

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/rawpipe"
	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// moment is how long what has come waits for more, so that many small writes are one
// message; heldBytes and heldPieces are how much of it waits at most.
const (
	moment     = 2 * time.Millisecond
	heldBytes  = 512 << 10
	heldPieces = 1 << 10
)

// Streams hands on what processes write to their stdout and stderr. What comes belongs
// to the cell that was set last, also after its end: only the next cell's beginning
// ends that. Memory is bounded: a writer waits while its front end does.
//
// The two are read by one goroutine, in the order in which they got something to read,
// and handed on in the order in which they were read. What was written to both before
// it came to reading can't be told apart: of that, each comes as one piece.
type Streams struct {
	pipes [2]*rawpipe.Pipe
	fds   [2]int   // theirs
	ready *os.File // an epoll: it lists the pipes that have something
	conn  syscall.RawConn
	wg    sync.WaitGroup

	mu       sync.Mutex // held while text is read and handed on, which keeps its order
	pieces   []piece    // what was read and not handed on
	held     int        // their bytes
	ended    [2]bool
	decoders [2]mime.Decoder
	cell     *kernel.Cell
	filter   func(text string, end bool) string
	before   func()
}

// piece is so many bytes that were read of a pipe at once.
type piece struct{ pipe, bytes int }

// NewStreams makes two pipes, and their writing ends for the process that is about to
// start, which the caller closes after that.
func NewStreams() (_ *Streams, stdout, stderr *os.File, err error) {
	s := &Streams{}
	var ends [2]*os.File
	defer func() {
		if err != nil {
			s.close()
			for _, end := range ends {
				end.Close() // of nil it does nothing
			}
		}
	}()
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(fd, true) // which lets the runtime's poller wait
	}
	if err != nil {
		return nil, nil, nil, os.NewSyscallError("epoll_create1", err)
	}
	s.ready = os.NewFile(uintptr(fd), "epoll")
	if s.conn, err = s.ready.SyscallConn(); err != nil {
		return nil, nil, nil, err
	}
	for i := range s.pipes {
		var fds [2]int
		if err = unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			return nil, nil, nil, os.NewSyscallError("pipe2", err)
		}
		// Files that do not block would be the runtime's poller's too, which nobody asks.
		r := os.NewFile(uintptr(fds[0]), "|0")
		ends[i] = os.NewFile(uintptr(fds[1]), "|1")
		if s.pipes[i], err = rawpipe.Of(r); err != nil {
			r.Close()
			return nil, nil, nil, err
		}
		s.fds[i] = fds[0]
		if err = unix.SetNonblock(fds[0], true); err == nil {
			err = unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, fds[0], &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)})
		}
		if err != nil {
			return nil, nil, nil, os.NewSyscallError("epoll_ctl", err)
		}
	}
	s.wg.Add(1)
	go s.pump()
	return s, ends[0], ends[1], nil
}

// FilterStderr has a function change the text of stderr on its way. It may hold back some
// of it until it is called with end, which is at each Drain and SetCell.
func (s *Streams) FilterStderr(f func(text string, end bool) string) {
	s.mu.Lock()
	s.filter = f
	s.mu.Unlock()
}

// Before has a function called before text is handed on, for what came earlier another
// way and waits for more. Nothing is handed on meanwhile.
func (s *Streams) Before(f func()) { s.Do(func() { s.before = f }) }

// Do calls a function while nothing is handed on.
func (s *Streams) Do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *Streams) pump() {
	defer s.wg.Done()
	var due time.Time // when what has come is handed on; zero while there is nothing
	for {
		err := s.conn.Read(func(uintptr) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.read()
		})
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		s.mu.Lock()
		now := time.Now()
		switch {
		case !due.IsZero() && !now.Before(due), s.held > heldBytes, len(s.pieces) > heldPieces:
			s.give()
			due = time.Time{}
			_ = s.ready.SetReadDeadline(due)
		case due.IsZero() && s.held > 0:
			due = now.Add(moment)
			_ = s.ready.SetReadDeadline(due)
		}
		s.mu.Unlock()
	}
}

// read reads what has come, of the pipe first that had something first. False: there is
// nothing. The caller holds mu, as with all that follows.
func (s *Streams) read() bool {
	var events [2]unix.EpollEvent
	n := 0
	_ = s.conn.Control(func(fd uintptr) { n, _ = unix.EpollWait(int(fd), events[:], 0) })
	for _, e := range events[:max(n, 0)] {
		i := int(e.Fd)
		if s.fill(i) == 0 && e.Events&unix.EPOLLHUP != 0 {
			s.ended[i] = true
			_ = s.conn.Control(func(fd uintptr) { _ = unix.EpollCtl(int(fd), unix.EPOLL_CTL_DEL, s.fds[i], nil) })
		}
	}
	return n > 0
}

// fill reads what lies in a pipe.
func (s *Streams) fill(i int) int {
	n := s.pipes[i].Fill()
	s.held += n
	if last := len(s.pieces) - 1; last >= 0 && s.pieces[last].pipe == i {
		s.pieces[last].bytes += n
	} else if n > 0 {
		s.pieces = append(s.pieces, piece{i, n})
	}
	return n
}

// SetCell makes a cell the owner of what comes. What was written before is still the
// last one's; with no cell it is thrown away.
func (s *Streams) SetCell(c *kernel.Cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
	s.cell = c
}

// Drain returns once all that was written before has been handed on.
func (s *Streams) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
}

// HandOn is Drain at a moment that ends nothing: a character of which not all bytes
// have come waits for the others.
func (s *Streams) HandOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handOn()
}

func (s *Streams) handOn() {
	if s.read() {
		s.read() // an epoll lists what was read until it is asked again, before what comes next
	}
	s.give()
}

func (s *Streams) drain() {
	s.handOn()
	for i := range s.pipes {
		s.text(i, s.decoders[i].Flush(), true)
	}
}

// give hands on what was read.
func (s *Streams) give() {
	if s.held == 0 {
		return
	}
	if s.before != nil {
		s.before()
	}
	var have [2][]byte
	for i, p := range s.pipes {
		have[i] = p.Take()
	}
	for _, p := range s.pieces {
		b := have[p.pipe]
		have[p.pipe] = b[p.bytes:]
		s.text(p.pipe, s.decoders[p.pipe].Write(b[:p.bytes]), false)
	}
	s.pieces, s.held = s.pieces[:0], 0
}

func (s *Streams) text(i int, text string, end bool) {
	if i == 1 && s.filter != nil {
		text = s.filter(text, end)
	}
	switch {
	case s.cell == nil:
	case i == 0:
		s.cell.Stdout(text)
	default:
		s.cell.Stderr(text)
	}
}

// Ended tells whether every writer has closed its ends, and all that came was taken.
func (s *Streams) Ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended[0] && s.ended[1] && s.held == 0
}

// Close ends the reading: a process that still writes gets SIGPIPE.
func (s *Streams) Close() {
	s.close()
}

func (s *Streams) close() {
	if s.ready != nil {
		s.ready.Close()
	}
	s.wg.Wait()
	for _, p := range s.pipes {
		if p != nil {
			p.Close()
		}
	}
}
