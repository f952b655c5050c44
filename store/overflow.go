package store

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/cellard/cellard/protocol/api"
)

// Overflow takes a stream that outgrew the inline limit. It is not safe for
// concurrent use. Whoever gets it calls Finish or Discard.
type Overflow struct {
	s          *Store
	p          *spool // nil if the file could not be made
	generation int
	stream     string
	buf        []byte
	total      int64
	dropped    int64 // from the first dropped byte on, all are
	err        error // why bytes were dropped, past the limit apart
	closed     bool
}

const overflowBuffer = 32 << 10

// NewOverflow begins a file for a stream of a cell. It fails only for a context
// id that can't be one: where the file can't be made, all is counted as dropped
// and Finish tells why.
func (s *Store) NewOverflow(contextID string, generation int, stream string) (*Overflow, error) {
	if !validContext(contextID) {
		return nil, fmt.Errorf("store: %q is no context's id", contextID)
	}
	o := &Overflow{s: s, generation: generation, stream: stream}
	o.p, o.err = s.newSpool(contextID)
	return o, nil
}

// Write adds text to the stream; it never fails. What is past the spool limit,
// or what there is no room for, is counted as dropped, and all after it: the file
// is the stream's beginning.
func (o *Overflow) Write(text []byte) {
	o.total += int64(len(text))
	if o.stopped() {
		o.dropped += int64(len(text))
		return
	}
	if room := o.s.o.SpoolLimit - o.p.size - int64(len(o.buf)); int64(len(text)) > room {
		n := room
		for n > 0 && n > room-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		o.dropped += int64(len(text)) - n
		text = text[:n]
	}
	if o.buf == nil {
		o.buf = make([]byte, 0, overflowBuffer)
	}
	if len(o.buf)+len(text) > overflowBuffer {
		o.flush()
	}
	if len(text) < overflowBuffer && !o.stopped() {
		o.buf = append(o.buf, text...)
		return
	}
	o.write(text)
}

// WriteString is Write of a string.
func (o *Overflow) WriteString(text string) { o.Write([]byte(text)) }

// stopped reports whether nothing more goes to the file.
func (o *Overflow) stopped() bool {
	return o.closed || o.p == nil || o.err != nil || o.dropped > 0
}

func (o *Overflow) flush() {
	o.write(o.buf)
	o.buf = o.buf[:0]
}

func (o *Overflow) write(text []byte) {
	n := 0
	if o.err == nil && o.p != nil && len(text) > 0 {
		n, o.err = o.p.Write(text)
	}
	o.dropped += int64(len(text) - n)
}

// Reset takes back all of the stream, as clear_output does; what comes after goes
// to the file again.
func (o *Overflow) Reset() {
	o.buf, o.total, o.dropped = o.buf[:0], 0, 0
	if o.p != nil && !o.closed {
		o.err = o.p.reset()
	}
}

// Discard takes the file away, if Finish has not given it its name.
func (o *Overflow) Discard() {
	o.closed = true
	if o.p != nil {
		o.p.discard()
	}
}

// Finish gives the file its name and returns what became of the stream. The
// error says why bytes were dropped, if not for the spool limit; where there is no
// file at all, the Path is empty and all bytes are dropped.
func (o *Overflow) Finish() (api.Overflow, error) {
	if o.closed {
		return api.Overflow{}, errors.New("store: the overflow is finished already")
	}
	o.flush()
	defer o.Discard()
	result := api.Overflow{Stream: o.stream, Bytes: o.total, Dropped: o.total}
	if o.p == nil {
		return result, fmt.Errorf("store: %s: %w", o.stream, o.err)
	}
	f, err := o.p.commit(o.generation, "text/plain")
	if err != nil {
		return result, fmt.Errorf("store: %s: %w", o.stream, errors.Join(o.err, err))
	}
	result.Path, result.Dropped = o.s.filePath(f.key), o.dropped
	if o.err != nil {
		return result, fmt.Errorf("store: %s: %w", o.stream, o.err)
	}
	return result, nil
}
