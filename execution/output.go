package execution

import (
	"io"
	"strings"
	"time"

	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/store"
)

// Streams are joined for events: text waits at most joinFor after the event
// before it, or until joinBytes have come.
const (
	joinFor   = 20 * time.Millisecond
	joinBytes = 64 << 10
)

// stream is stdout or stderr as the Execution will show it: folded, its head and
// tail in text, all of it in the overflow file once it outgrew the limit.
type stream struct {
	name string
	fold mime.Folder
	text *mime.HeadTail // settled text
	over *store.Overflow
	info *api.Overflow // once the file is whole
}

// String is the text so far, the line that may still change included.
func (s *stream) String() string { return s.text.StringWith(s.fold.Pending()) }

// pending is stream text that has not become an event yet.
type pending struct {
	i     int // index of the stream
	text  strings.Builder
	last  time.Time // of the last stream event
	timer *time.Timer
}

// Stdout and Stderr name the streams for Stream.
const (
	Stdout = 0
	Stderr = 1
)

// Stream adds text to stdout or stderr. The text must be valid UTF-8.
func (e *Execution) Stream(i int, text string) {
	if text == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if e.o.Wrote != nil {
		e.o.Wrote(i, len(text))
	}
	e.newOutput()
	e.fold(e.streams[i], text)
	if !e.ended.IsZero() {
		return // late: the log is closed
	}
	p := &e.pending
	if p.i != i || p.text.Len() >= joinBytes {
		e.flush()
	}
	p.i = i
	for len(text) > joinBytes { // a huge message: events of a bounded size
		n := joinBytes
		for n > joinBytes-4 && !runeStart(text[n]) {
			n--
		}
		p.text.WriteString(text[:n])
		e.flush()
		text = text[n:]
	}
	p.text.WriteString(text)
	if wait := joinFor - time.Since(p.last); wait <= 0 || p.text.Len() >= joinBytes {
		e.flush()
	} else if p.timer == nil {
		p.timer = time.AfterFunc(wait, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.ended.IsZero() && !e.closed {
				e.flush()
			}
		})
	}
}

func runeStart(b byte) bool { return b&0xC0 != 0x80 }

// StreamFrom adds all of r, in pieces.
func (e *Execution) StreamFrom(i int, r io.Reader) error {
	b := make([]byte, 64<<10)
	var d mime.Decoder
	for {
		n, err := r.Read(b)
		e.Stream(i, d.Write(b[:n]))
		if err != nil {
			e.Stream(i, d.Flush())
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

// flush makes the pending text an event.
func (e *Execution) flush() {
	p := &e.pending
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	if p.text.Len() == 0 {
		return
	}
	k := api.KindStdout
	if p.i == Stderr {
		k = api.KindStderr
	}
	e.log.append(api.Event{K: k, ID: e.o.ID, Text: p.text.String()}, false)
	p.text.Reset()
	p.last = time.Now()
}

// fold adds text to what the Execution will show of the stream.
func (e *Execution) fold(s *stream, text string) { e.settle(s, s.fold.Write(text)) }

// settle adds text that can no longer change.
func (e *Execution) settle(s *stream, text string) {
	if text == "" {
		return
	}
	if s.over == nil && s.text.Total()+int64(len(text)) > e.lim.Stream && e.ended.IsZero() {
		whole := s.text.String() // nothing was cut so far
		over, err := e.o.Store.NewOverflow(e.o.ContextID, e.out.Generation, s.name)
		if err == nil {
			s.over = over
			s.over.WriteString(whole)
		}
	}
	s.text.WriteString(text)
	switch {
	case s.over != nil && e.ended.IsZero():
		s.over.WriteString(text)
	case s.over == nil && e.ended.IsZero(): // counted at the end
	case s.text.Cut(): // no file holds what was cut
		e.out.LostBytes += int64(len(text))
	}
}

// finishStreams settles the last lines, closes the overflow files, and counts what neither
// they nor the Execution hold.
func (e *Execution) finishStreams() {
	for _, s := range e.streams {
		last := s.fold.Pending()
		s.fold.Reset()
		e.settle(s, last)
		kept := int64(0) // the file is the stream's beginning
		if s.over != nil {
			info, _ := s.over.Finish() // what could not be kept is in info.Dropped
			s.info = &info
			kept = info.Bytes - info.Dropped
		}
		e.out.LostBytes += s.text.Missing(kept)
	}
}

// newOutput carries out a clear_output that waited for it.
func (e *Execution) newOutput() {
	if e.clear {
		e.clear = false
		e.clearNow()
	}
}

// Clear is clear_output: at once, or, with wait, when the next output comes.
func (e *Execution) Clear(wait bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.flush()
	if e.ended.IsZero() {
		e.log.append(api.Event{K: api.KindClear, Wait: wait}, false)
	}
	e.clear = wait
	if !wait {
		e.clearNow()
	}
}

func (e *Execution) clearNow() {
	for _, s := range e.streams {
		s.text.Reset()
		s.fold.Reset()
		if s.over != nil {
			s.over.Discard()
			s.over = nil
		}
	}
	for _, r := range e.results {
		r.cleared = true
		r.drop()
	}
	e.results, e.inline, e.about, e.values = nil, 0, 0, 0
}

// Display adds a result: the bundle and the metadata of a display_data or, with main, of
// an execute_result. A displayID, if there is one, is remembered in d.
func (e *Execution) Display(main bool, data, metadata jupyter.Value, displayID string, d *DisplayMap) {
	if e.full() {
		e.LostBytes(data.Size())
		return
	}
	b := e.bundle(data, metadata)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.newOutput()
	e.out.LostBytes += b.lost
	r := &result{Result: api.Result{Main: main}}
	r.set(b)
	e.results = append(e.results, r)
	e.inline += r.inline
	e.about += r.about
	e.values += r.values
	d.add(displayID, shown{e, r})
	if e.ended.IsZero() {
		e.flush()
		e.log.append(api.Event{K: api.KindResult, ID: e.o.ID, Main: main, Data: b.data, Refs: b.refs, Metadata: b.metadata, DisplayID: displayID}, false)
	}
}

// full reports whether no more results are kept.
func (e *Execution) full() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.values >= e.lim.Results && !e.clear
}

// Update is update_display_data: it changes the results that the id names, of this
// cell or an earlier one, and logs it here. It reports whether there was one.
func (e *Execution) Update(data, metadata jupyter.Value, displayID string, d *DisplayMap) bool {
	all := d.byID[displayID]
	if len(all) == 0 {
		return false
	}
	found := false
	var b bundle
	for i, s := range all {
		if i == 0 || s.e != all[i-1].e {
			b = s.e.bundle(data, metadata)
		}
		s.e.mu.Lock()
		if !s.r.cleared && !s.e.closed {
			found = true
			s.e.inline += b.size - s.r.inline
			s.e.about += b.about - s.r.about
			s.e.values += b.values() - s.r.values
			s.r.set(b)
		}
		s.e.mu.Unlock()
	}
	if !found {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended.IsZero() {
		e.flush()
		e.log.append(api.Event{K: api.KindUpdate, ID: all[len(all)-1].e.o.ID, Data: b.data, Refs: b.refs, Metadata: b.metadata, DisplayID: displayID}, false)
	}
	return true
}

// Raise is the error that the code raised.
func (e *Execution) Raise(err api.CellError) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || !e.ended.IsZero() {
		return
	}
	e.newOutput()
	e.setError(&err)
}

// Raised reports whether the code raised, and what.
func (e *Execution) Raised() *api.CellError {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.out.Error
}

func (e *Execution) setError(err *api.CellError) {
	e.flush()
	c := *err
	c.Name = mime.CutMiddle(strings.ToValidUTF8(c.Name, "\uFFFD"), 1<<10)
	c.Value = mime.CutMiddle(mime.StripANSI(strings.ToValidUTF8(c.Value, "\uFFFD")), e.lim.Traceback)
	c.Traceback = mime.CutMiddle(mime.StripANSI(strings.ToValidUTF8(c.Traceback, "\uFFFD")), e.lim.Traceback)
	e.out.Error = &c
	e.log.append(api.Event{K: api.KindError, ID: e.o.ID, Err: &c}, false)
}

// Ask takes the cell's question: its prompt goes to stdout. It returns the answer
// if one is left; live says that one will come by Answer; else there is none.
func (e *Execution) Ask(prompt string, password bool) (answer string, ok, live bool) {
	e.Stream(Stdout, strings.ToValidUTF8(prompt, "\uFFFD"))
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.answers) > 0 {
		answer, e.answers = e.answers[0], e.answers[1:]
		return answer, true, false
	}
	if e.o.Stdin == nil || !e.o.Stdin.Live {
		return "", false, false
	}
	e.flush()
	e.asking = true
	e.log.append(api.Event{K: api.KindInput, Prompt: prompt, Password: password}, false)
	return "", false, true
}

// Answered reports whether the cell was waiting for an answer, and that it isn't any more.
func (e *Execution) Answered() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.asking
	e.asking = false
	return was
}
