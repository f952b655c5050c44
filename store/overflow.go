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
	err        error // why bytes were dropped, if not for the limit
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
func (o *Overflow) Write(text []byte) { add(o, text) }

// WriteString is Write of a string.
func (o *Overflow) WriteString(text string) { add(o, text) }

func add[T string | []byte](o *Overflow, text T) {
	o.total += int64(len(text))
	if o.dropped > 0 {
		o.dropped += int64(len(text))
		return
	}
	if o.p != nil {
		if room := o.s.o.SpoolLimit - o.p.size - int64(len(o.buf)); int64(len(text)) > room {
			n := room
			for n > 0 && n > room-utf8.UTFMax && !utf8.RuneStart(text[n]) {
				n--
			}
			o.dropped += int64(len(text)) - n
			text = text[:n]
		}
	}
	for len(text) > 0 && o.err == nil && o.p != nil {
		if o.buf == nil {
			o.buf = make([]byte, 0, overflowBuffer)
		}
		n := copy(o.buf[len(o.buf):cap(o.buf)], text)
		o.buf = o.buf[:len(o.buf)+n]
		text = text[n:]
		if len(o.buf) == cap(o.buf) {
			o.flush()
		}
	}
	o.dropped += int64(len(text))
}

func (o *Overflow) flush() {
	if len(o.buf) == 0 {
		return
	}
	var n int
	n, o.err = o.p.Write(o.buf)
	o.dropped += int64(len(o.buf) - n)
	o.buf = o.buf[:0]
}

// Reset takes back all of the stream, as clear_output does; what comes after goes
// to the file again.
func (o *Overflow) Reset() {
	o.buf, o.total, o.dropped = o.buf[:0], 0, 0
	if o.p == nil {
		return
	}
	if o.err = o.p.reset(); o.err != nil {
		o.p.discard()
		o.p = nil
	}
}

// Discard takes the file away, if Finish has not given it its name.
func (o *Overflow) Discard() {
	o.closed = true
	if o.p != nil {
		o.p.discard()
		o.p = nil
	}
	o.buf = nil
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
