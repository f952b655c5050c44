package output

import (
	"os"
	"sync"
	"time"

	"github.com/cellard/cellard/internal/rawpipe"
	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// moment is how long what has come waits for more, so that many small writes are one
// message.
const moment = 2 * time.Millisecond

// Streams hands on what processes write to their stdout and stderr, in the order in which
// it came. What comes belongs to the cell that was set last, also after its end: only the
// next cell's beginning ends that. Memory is bounded: a writer waits while its front end
// does.
type Streams struct {
	raw  *rawpipe.Pair
	stop chan struct{}
	wg   sync.WaitGroup

	mu       sync.Mutex // held while text is handed on, which keeps its order
	decoders [2]mime.Decoder
	cell     *kernel.Cell
	filter   func(text string, end bool) string
	before   func()
}

// NewStreams makes two pipes, and their writing ends for the process that is about to
// start, which the caller closes after that.
func NewStreams() (s *Streams, stdout, stderr *os.File, err error) {
	s = &Streams{stop: make(chan struct{})}
	if s.raw, stdout, stderr, err = rawpipe.New(); err != nil {
		return nil, nil, nil, err
	}
	s.wg.Add(1)
	go s.pump()
	return s, stdout, stderr, nil
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
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-s.raw.Ready():
		case <-s.stop:
			return
		}
		pause.Reset(moment)
		select {
		case <-pause.C:
		case <-s.stop:
			return
		}
		s.Do(func() { s.give(s.raw.Take()) })
	}
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

func (s *Streams) handOn() { s.give(s.raw.Drain()) }

func (s *Streams) drain() {
	s.handOn()
	for i := range s.decoders {
		s.text(i, s.decoders[i].Flush(), true)
	}
}

// give hands on what was read; the caller holds mu, as with all of these.
func (s *Streams) give(pieces []rawpipe.Piece) {
	if len(pieces) > 0 && s.before != nil {
		s.before()
	}
	for _, p := range pieces {
		s.text(p.Stream, s.decoders[p.Stream].Write(p.Bytes), false)
	}
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
func (s *Streams) Ended() bool { return s.raw.Ended() }

// Close ends the reading: a process that still writes gets SIGPIPE.
func (s *Streams) Close() {
	close(s.stop)
	s.wg.Wait()
	s.raw.Close()
}
