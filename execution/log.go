package execution

import (
	"context"
	"errors"
	"io"
	"os"
	"sort"
	"sync"

	"github.com/cellard/cellard/protocol/api"
)

// segmentBytes is how much of the log is one segment: the unit that goes to disk
// and that is dropped.
const segmentBytes = 256 << 10

// segment is a run of whole event lines. Its bytes are in data, or on disk.
type segment struct {
	first, last int64 // seq of its first and last event
	data        []byte
	starts      []uint32 // where each event's line begins
	off, size   int64    // where in the file, once data is nil
}

// eventLog is the bounded log of one execution. Its newest bytes are in memory, older
// ones in an unlinked file, and the oldest are dropped past the bound.
type eventLog struct {
	memory, disk int64
	temp         func() (*os.File, error)

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each append that somebody waits for
	waiting  bool
	segs     []*segment
	inMemory int64
	file     *os.File
	fileSize int64
	seq      int64
	ended    bool
	dropped  int64 // seq of the newest event that is gone
	freed    bool
}

func newEventLog(memory, disk int64, temp func() (*os.File, error)) *eventLog {
	return &eventLog{memory: memory, disk: disk, temp: temp, changed: make(chan struct{})}
}

// append numbers ev and adds its line. After the end it does nothing.
func (l *eventLog) append(ev api.Event, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.freed {
		return
	}
	l.seq++
	ev.Seq = l.seq
	line, err := api.Marshal(ev)
	if err != nil { // a json.RawMessage that is no JSON: our own fault, but never a hole in seq
		line, _ = api.Marshal(api.Event{K: api.KindGap, Seq: l.seq, Missed: 1})
	}
	s := l.tail(len(line) + 1)
	if s.first == 0 {
		s.first = l.seq
	}
	s.last = l.seq
	s.starts = append(s.starts, uint32(len(s.data)))
	if line = append(line, '\n'); s.data == nil {
		s.data = line
	} else {
		s.data = append(s.data, line...)
	}
	s.size = int64(len(s.data))
	l.inMemory += int64(len(line))
	l.ended = last
	l.bound()
	if l.waiting {
		l.waiting = false
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

// tail is the segment that takes the next n bytes.
func (l *eventLog) tail(n int) *segment {
	if k := len(l.segs); k > 0 {
		if s := l.segs[k-1]; s.data != nil && len(s.data)+n <= segmentBytes {
			return s
		}
	}
	s := &segment{}
	if n <= segmentBytes { // else the line itself will be its data
		s.data = make([]byte, 0, max(n, 512))
	}
	l.segs = append(l.segs, s)
	return s
}

// bound moves what is over the memory bound to disk, oldest first, and drops what
// can't go there. The newest segment always stays in memory.
func (l *eventLog) bound() {
	for l.inMemory > l.memory {
		i := 0
		for l.segs[i].data == nil {
			i++
		}
		if i == len(l.segs)-1 {
			return
		}
		s := l.segs[i]
		if !l.toDisk(s) {
			l.dropTo(s)
		}
	}
}

// spill moves to disk what fits there, and drops nothing.
func (l *eventLog) spill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segs {
		if s.data != nil && (l.fileSize+int64(len(s.data)) > l.disk || !l.toDisk(s)) {
			return
		}
	}
}

func (l *eventLog) toDisk(s *segment) bool {
	n := int64(len(s.data))
	if n > l.disk {
		return false
	}
	if l.file == nil {
		f, err := l.temp()
		if err != nil {
			return false
		}
		l.file = f
	}
	if l.fileSize+n > l.disk {
		// The file is full: all that is in it goes, so that it can be used again from
		// its start. Readers that were still there get a gap.
		for l.segs[0] != s {
			l.dropTo(l.segs[0])
		}
		l.fileSize = 0
		if l.file.Truncate(0) != nil {
			return false
		}
	}
	if _, err := l.file.WriteAt(s.data, l.fileSize); err != nil {
		return false
	}
	s.off = l.fileSize
	l.fileSize += n
	l.inMemory -= n
	s.data = nil
	return true
}

// dropTo drops the segments up to and including last.
func (l *eventLog) dropTo(last *segment) {
	for i, s := range l.segs {
		l.inMemory -= int64(len(s.data))
		l.dropped = s.last
		if s == last {
			l.segs = append(l.segs[:0:0], l.segs[i+1:]...)
			return
		}
	}
}

// last is the seq of the newest event; 0 before the first.
func (l *eventLog) last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// size is how many bytes of memory the log holds.
func (l *eventLog) size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inMemory
}

// free drops all and wakes the readers; they get ErrFreed.
func (l *eventLog) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.freed {
		return
	}
	l.freed = true
	l.segs, l.inMemory = nil, 0
	if l.file != nil {
		l.file.Close()
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// ErrFreed is what a Reader gets when the execution was forgotten under it.
var ErrFreed = errors.New("the execution is no longer kept")

// Reader follows the events of an execution from a point on. It is used by one
// goroutine.
type Reader struct {
	log   *eventLog
	after int64
}

// Next returns the next whole NDJSON lines: what is there, some 256 KiB at most but
// at least one line. They must not be changed. It waits for the first. After the last line it returns
// io.EOF; a context that ends returns the context's error, and the reader can be
// used again. Events that are no longer there are told by a gap line.
func (r *Reader) Next(ctx context.Context) ([]byte, error) {
	l := r.log
	for {
		l.mu.Lock()
		if l.freed {
			l.mu.Unlock()
			return nil, ErrFreed
		}
		if r.after < l.dropped {
			line, err := api.Marshal(api.Event{K: api.KindGap, Seq: l.dropped, Missed: l.dropped - r.after})
			r.after = l.dropped
			l.mu.Unlock()
			return append(line, '\n'), err
		}
		if r.after < l.seq {
			b, last, err := l.read(r.after)
			l.mu.Unlock()
			if err != nil {
				return nil, err
			}
			r.after = last
			return b, nil
		}
		if l.ended {
			l.mu.Unlock()
			return nil, io.EOF
		}
		l.waiting = true
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// read returns the lines after seq of the segment that holds the next one. What is
// written once is never changed, so it can be handed out as it is.
func (l *eventLog) read(after int64) ([]byte, int64, error) {
	i := sort.Search(len(l.segs), func(i int) bool { return l.segs[i].last > after })
	s := l.segs[i]
	skip := int64(0)
	if after >= s.first {
		skip = int64(s.starts[after-s.first+1])
	}
	if s.data != nil {
		return s.data[skip:len(s.data):len(s.data)], s.last, nil
	}
	b := make([]byte, s.size-skip)
	if _, err := l.file.ReadAt(b, s.off+skip); err != nil {
		return nil, 0, err
	}
	return b, s.last, nil
}
