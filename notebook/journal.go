package notebook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"

	"github.com/cellard/cellard/protocol/api"
)

// JournalOptions are a Journal's bounds; a zero field stands for its default.
type JournalOptions struct {
	// Bytes is how much of code and events is kept; 16 MiB. The oldest half goes when there
	// is more.
	Bytes int64
	// Memory is how much of it lies in memory before it goes to a file, and again how much
	// where the file takes no more, the disk being full; 64 KiB.
	Memory int
	// Cells is how many are kept; 2,000.
	Cells int
	// Temp makes a file without a name.
	Temp func() (*os.File, error)
}

// Journal is what a session has run, and what came of it.
type Journal struct {
	o       JournalOptions
	largest int64 // of one cell, in bytes

	mu      sync.Mutex
	entries []*entry // oldest first; the last one may be running
	parts   []*part  // that the entries lie in: at most two
	dropped int      // cells that are no longer kept
	closed  bool
}

// Cell is one cell's execution, as package execution has it.
type Cell struct {
	ID         string
	Generation int
	Code       string
	// Outcome is the execution as it is now, without what it has put out.
	Outcome func() api.Execution
	// Events reads its events from the first; LastSeq is the number of the newest.
	Events  func() Events
	LastSeq func() int64
}

// Events reads the lines of an execution's log, as execution.Reader does: with a context
// that has ended it gives those that are there, and then an error.
type Events interface {
	Next(ctx context.Context) ([]byte, error)
}

// entry is one cell.
type entry struct {
	id         string
	generation int
	cell       *Cell // while it runs
	x          api.Execution
	part       *part
	code, log  span
	codeBytes  int  // of all of the code, where not all of it is kept
	unkept     bool // what it has put out could not be kept
	displays   bool // a display id is among the events
}

// span is where bytes lie in a part: among those of the file, or of the memory that stands
// in for it.
type span struct {
	off, size int64
	spare     bool
}

// NewJournal makes an empty one.
func NewJournal(o JournalOptions) *Journal {
	o.Bytes = cmp.Or(o.Bytes, 16<<20)
	o.Memory = cmp.Or(o.Memory, 64<<10)
	o.Cells = cmp.Or(o.Cells, 2000)
	return &Journal{o: o, largest: o.Bytes / 4}
}

// Begin notes a cell that begins to run.
func (j *Journal) Begin(c Cell) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	e := &entry{id: c.ID, generation: c.Generation}
	code := c.Code
	c.Code = "" // it is in the part from here on
	if most := j.largest / 2; int64(len(code)) > most {
		e.codeBytes, code = len(code), code[:most]
	}
	e.part = j.room(int64(len(code)))
	var err error
	if e.code, err = e.part.add(j.o, []byte(code)); err != nil { // the disk is full: what came of the cell may have room
		e.code, e.codeBytes = span{}, max(len(code), e.codeBytes)
	}
	e.cell = &c
	e.part.cells++
	j.entries = append(j.entries, e)
}

// End notes what came of the cell that was begun last, if it is that one.
func (j *Journal) End(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.entries) == 0 {
		return
	}
	e := j.entries[len(j.entries)-1]
	if e.id != id || e.cell == nil {
		return
	}
	e.x = outcome(e.cell)
	log := readLog(e.cell, j.largest/2)
	e.cell = nil
	// Code and events lie in one part, and a part that has begun is never moved.
	var err error
	if e.log, err = e.part.add(j.o, log); err != nil {
		e.log, e.unkept = span{}, true
		return
	}
	e.displays = bytes.Contains(log, []byte(`"displayId":`))
}

// outcome is what is kept of a cell beside its events. They have its error.
func outcome(c *Cell) api.Execution {
	x := c.Outcome()
	x.Error, x.Stdout, x.Stderr, x.Results = nil, "", "", nil
	return x
}

// readLog reads the events that are there, up to so many bytes: whole lines, without the
// last one, which says all once more. What is left out is told by a gap.
func readLog(c *Cell, most int64) []byte {
	ended, cancel := context.WithCancel(context.Background())
	cancel() // nothing is waited for
	var log []byte
	kept := 0 // where the last line begins that is kept
	for r := c.Events(); ; {
		lines, err := r.Next(ended)
		if err != nil {
			return log
		}
		for line := range bytes.Lines(lines) {
			if bytes.HasPrefix(line, []byte(`{"k":"execution"`)) {
				return log
			}
			if int64(len(log)+len(line)) > most {
				var last struct{ Seq int64 }
				_ = json.Unmarshal(log[kept:], &last) // of nothing: 0
				gap, _ := api.Marshal(api.Event{K: api.KindGap, Missed: c.LastSeq() - last.Seq})
				return append(append(log, gap...), '\n')
			}
			kept = len(log)
			log = append(log, line...)
		}
	}
}

// room is the part that takes a cell with so much code. The oldest part goes when there
// are two and the newest is full: that one, and a whole cell on top, are within the bound.
func (j *Journal) room(code int64) *part {
	if n := len(j.parts); n > 0 {
		if p := j.parts[n-1]; p.size+code <= j.largest && p.cells < j.o.Cells/2 {
			return p
		}
	}
	if len(j.parts) == 2 {
		old := j.parts[0]
		j.parts = j.parts[1:]
		old.close()
		keep := j.entries[:0:0]
		for _, e := range j.entries {
			if e.part != old {
				keep = append(keep, e)
			}
		}
		j.dropped += len(j.entries) - len(keep)
		j.entries = keep
	}
	p := &part{}
	j.parts = append(j.parts, p)
	return p
}

// Close forgets all of it.
func (j *Journal) Close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	for _, p := range j.parts {
		p.close()
	}
	j.parts, j.entries = nil, nil
}

// part holds the bytes of some cells: in memory while they are few, then in a file.
type part struct {
	data   []byte
	file   *os.File
	spare  []byte // what the file did not take
	size   int64
	cells  int
	closed bool
}

var errDropped = errors.New("no longer kept")

// add keeps b. Where the disk is full some of it is kept all the same: a session is wanted
// then more than ever.
func (p *part) add(o JournalOptions, b []byte) (span, error) {
	at, err := p.addToFile(o, b)
	if err != nil && !p.closed && len(p.spare)+len(b) <= o.Memory {
		at, err = span{int64(len(p.spare)), int64(len(b)), true}, nil
		p.spare = append(p.spare, b...)
	}
	return at, err
}

func (p *part) addToFile(o JournalOptions, b []byte) (span, error) {
	at := span{p.size, int64(len(b)), false}
	switch {
	case p.closed:
		return at, errDropped
	case p.file == nil && len(p.data)+len(b) <= o.Memory:
		p.data = append(p.data, b...)
	default:
		if p.file == nil {
			f, err := o.Temp()
			if err != nil {
				return at, err
			}
			if _, err := f.WriteAt(p.data, 0); err != nil {
				f.Close()
				return at, err
			}
			p.file, p.data = f, nil
		}
		if _, err := p.file.WriteAt(b, p.size); err != nil {
			return at, err
		}
	}
	p.size += at.size
	return at, nil
}

func (p *part) read(s span) ([]byte, error) {
	b := make([]byte, s.size)
	switch {
	case p.closed:
		return nil, errDropped
	case s.spare:
		copy(b, p.spare[s.off:])
		return b, nil
	case p.file == nil:
		copy(b, p.data[s.off:])
		return b, nil
	}
	_, err := p.file.ReadAt(b, s.off)
	return b, err
}

func (p *part) close() {
	p.closed, p.data, p.spare = true, nil, nil
	if p.file != nil {
		p.file.Close()
	}
}
