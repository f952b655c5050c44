package java

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	// moment is how long a text waits for more, so that many small ones are one message.
	moment = 2 * time.Millisecond
	// textBytes is how much of a text is handed on at once.
	textBytes = 256 << 10
)

// read takes what comes from Java, until the machine or its protocol ends.
func (l *Language) read() {
	defer l.reading.Done()
	defer close(l.over)
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for id, c := range l.calls {
			close(c)
			delete(l.calls, id)
		}
	}()
	defer func() {
		if l.version == "" {
			close(l.ready)
		}
	}()
	for {
		err := l.wait()
		var f *frame
		if err == nil {
			f, err = readFrame(l.m.in)
		}
		if l.m.arrivals.some() {
			// What children have written to the pipes was there before this frame.
			l.m.streams.HandOn()
		}
		if err == nil && l.add(f) {
			continue
		}
		l.m.streams.Do(l.text.give)
		if err == nil {
			err = l.take(f)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				l.fail(err)
			}
			return
		}
	}
}

// fail notes what is wrong with what Java sent, and ends the machine: nothing that comes
// after can be made sense of.
func (l *Language) fail(err error) {
	l.mu.Lock()
	if l.protocol == nil {
		l.protocol = fmt.Errorf("%w: a cell has written into the kernel's own channel, or Java is out of memory", err)
	}
	l.mu.Unlock()
	_ = l.m.cmd.Process.Kill()
}

// text is what a cell has printed and has not been handed on; the lock of Streams is its.
type text struct {
	cell   *cell
	stderr bool
	bytes  []byte
}

// wait returns when there is something to read; or hands on the text and then waits,
// when nothing comes for a moment.
func (l *Language) wait() error {
	if l.m.in.Buffered() > 0 {
		return nil
	}
	held := false
	l.m.streams.Do(func() { held = len(l.text.bytes) > 0 })
	if !held {
		return nil
	}
	_ = l.m.inFile.SetReadDeadline(time.Now().Add(moment))
	_, err := l.m.in.Peek(1)
	_ = l.m.inFile.SetReadDeadline(time.Time{})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		l.m.streams.Do(l.text.give)
		return nil
	}
	return err
}

// add takes a frame if it is of text; false if it is not.
func (l *Language) add(f *frame) bool {
	if f.kind != fromStdout && f.kind != fromStderr {
		return false
	}
	c, _ := l.cell(f.number())
	l.m.streams.Do(func() { l.text.add(c, f.kind == fromStderr, f.rest) })
	return true
}

func (t *text) add(c *cell, stderr bool, b []byte) {
	if c != t.cell || stderr != t.stderr {
		t.give()
		t.cell, t.stderr = c, stderr
	}
	t.bytes = append(t.bytes, b...)
	if len(t.bytes) >= textBytes {
		t.give()
	}
}

func (t *text) give() {
	if t.cell != nil && len(t.bytes) > 0 {
		t.cell.print(t.stderr, t.bytes)
	}
	t.bytes = t.bytes[:0]
}

// take does what a frame says. An error ends the kernel.
func (l *Language) take(f *frame) error {
	switch f.kind {
	case fromVersion:
		if l.version != "" {
			return fmt.Errorf("%w: a second version", errFrame)
		}
		if l.version = f.text(); l.version == "" {
			l.version = "?"
		}
		close(l.ready)
	case fromResult, fromDisplay, fromUpdate:
		if c, _ := l.cell(f.number()); c != nil {
			c.show(f.kind, f)
		}
	case fromClear:
		c, _ := l.cell(f.number())
		if wait := f.flag(); c != nil {
			c.to.Clear(wait)
		}
	case fromEnd:
		c, _ := l.cell(f.number())
		if c == nil {
			return fmt.Errorf("%w: the end of a cell that is not running", errFrame)
		}
		c.flush()
		select {
		case c.end <- f:
		default:
			return fmt.Errorf("%w: a second end of a cell", errFrame)
		}
		return nil
	case fromReply:
		l.mu.Lock()
		id := f.number()
		if c := l.calls[id]; c != nil {
			c <- f
			delete(l.calls, id)
		}
		l.mu.Unlock()
	case fromFile, fromInput, fromStuck, fromReplace, fromSettle:
		return l.serve(f)
	default:
		return fmt.Errorf("%w: of an unknown type %d", errFrame, f.kind)
	}
	return f.err()
}

// serve answers a call of Java's.
func (l *Language) serve(f *frame) error {
	call := f.number()
	answer := func(value string, err error) {
		if err != nil {
			value = err.Error()
		}
		_ = l.m.send(newFrame(toAnswer).number(call).flag(err == nil).text(value))
	}
	switch f.kind {
	case fromFile:
		// Here, and not beside: what is shown next comes after it.
		c, _ := l.cell(f.number())
		name, path, id, update := f.text(), f.text(), f.text(), f.flag()
		if c == nil {
			answer("", errForgotten)
		} else if !f.bad {
			answer("", c.file(name, path, id, update, l.fileSize))
		}
	case fromInput:
		c, ctx := l.cell(f.number())
		password, prompt := f.flag(), f.text()
		if c == nil {
			answer("", errForgotten)
		} else if !f.bad {
			l.beside(func() { answer(c.to.Input(ctx, prompt, password)) })
		}
	case fromSettle:
		answer("", nil)
	case fromStuck:
		hard, tid := f.flag(), f.small()
		l.beside(func() { answer("", l.stopStuck(hard, tid)) })
	case fromReplace:
		signature, code := f.text(), f.bytes()
		l.beside(func() { answer("", l.replace(signature, code)) })
	}
	return f.err()
}

// beside runs what may take a while; Close waits for it.
func (l *Language) beside(f func()) {
	l.reading.Add(1)
	go func() {
		defer l.reading.Done()
		f()
	}()
}

var errForgotten = errors.New("the cell that this belongs to ended long ago")

var errNoDebugger = errors.New("java: the debugger's interface is not there: it takes the loopback interface (lo) to be up")

func (l *Language) stopStuck(hard bool, tid int) error {
	d := l.m.debugger()
	if d == nil {
		return errNoDebugger
	}
	l.mu.Lock()
	if l.stopper == nil {
		l.stopper = newStopper(d)
	}
	l.mu.Unlock()
	err := l.stopper.stop(hard)
	if tid != 0 {
		wake(l.m.pid(), tid)
	}
	return err
}

func (l *Language) replace(signature string, code []byte) error {
	d := l.m.debugger()
	if d == nil {
		return errNoDebugger
	}
	return d.redefine(signature, code)
}
