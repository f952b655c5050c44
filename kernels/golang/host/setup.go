package host

import (
	"fmt"
	"io"
	"log"
	"os"
	"sync/atomic"

	"github.com/cellard/cellard/kernels/golang/live"
	"github.com/cellard/cellard/kernels/golang/live/stdin"
	"github.com/cellard/cellard/kernels/golang/live/timer"
	"github.com/cellard/cellard/kernels/golang/wire"
)

// Setup makes this package the Host of cells. send hands an event to the kernel, put one
// whose channel is closed when the kernel has taken it, ask asks it for a line of input.
func Setup(send func(Event), put func(Event) <-chan struct{}, ask func(*Cell) (string, error)) {
	h := cellHost{send, put}
	live.It = h
	keepStandard()
	log.SetOutput(logged{h})
	timer.Adopt = adopted
	stdin.Ask = func() (string, error) {
		c := ofGoroutine()
		if c == nil || c.over.Load() {
			return "", io.EOF
		}
		line, err := ask(c)
		live.Check()
		return line, err
	}
}

// cellHost is the live.Host.
type cellHost struct {
	send func(Event)
	put  func(Event) <-chan struct{}
}

var _ live.Host = cellHost{}

// stream is stdout or stderr, by the goroutine that writes: a cell that is over has its
// text sent in its own name.
type stream struct {
	fd   int32
	file *os.File
	h    cellHost
}

// wrote is the descriptor that the running cell has written to last; 0 for none, byEvent
// for what it has shown and nobody has waited for.
var wrote atomic.Int32

const byEvent = -1

// switches is how often the running cell has waited at a change from one stream to the
// other. Each costs a moment, and a loop may make any number of them: past maxSwitches they
// keep their order no more.
var switches atomic.Int32

const maxSwitches = 1000

// Write writes to the process's descriptor where the cell runs. Both are pipes, and events
// go by a third: nobody can tell what was written to which first. So before another one
// is written to, what is in the last has to be taken.
func (s stream) Write(b []byte) (int, error) {
	if c := ofGoroutine(); c != nil {
		if c.over.Load() {
			c.late(s.h.send, [...]string{1: "stdout", 2: "stderr"}[s.fd], string(b))
			return len(b), nil
		}
		if wrote.Load() == s.fd {
			return s.file.Write(b)
		}
		last := wrote.Swap(s.fd)
		if last == byEvent || last != 0 && switches.Add(1) <= maxSwitches {
			settled(s.h.put(Event{Kind: "settle", Cell: c.Number}))
		}
	}
	return s.file.Write(b)
}

// of gives the stream behind a writer that is one of the process's own; nil is stdout.
func (h cellHost) of(w io.Writer) io.Writer {
	f, ok := w.(*os.File)
	switch {
	case w == nil, ok && f == os.Stdout:
		return stream{1, os.Stdout, h}
	case ok && f == os.Stderr:
		return stream{2, os.Stderr, h}
	}
	return w
}

func (h cellHost) Fprint(w io.Writer, a []any) (int, error) {
	return io.WriteString(h.of(w), h.Sprint(a))
}

func (h cellHost) Fprintf(w io.Writer, format string, a []any) (int, error) {
	return io.WriteString(h.of(w), h.Sprintf(format, a))
}

func (h cellHost) Fprintln(w io.Writer, a []any) (int, error) {
	return io.WriteString(h.of(w), h.Sprintln(a))
}

func (cellHost) Sprint(a []any) string                 { return formatted(fmt.Sprint(a...)) }
func (cellHost) Sprintf(format string, a []any) string { return formatted(fmt.Sprintf(format, a...)) }
func (cellHost) Sprintln(a []any) string               { return formatted(fmt.Sprintln(a...)) }

// formatted is what fmt has made, for users. Where a method that fmt called was stopped,
// fmt has recovered from that.
func formatted(s string) string {
	live.Check()
	return unmark(s)
}

// one reads a byte at a time, so that Scan takes no more than it needs.
type one struct{}

func (one) Read(b []byte) (int, error) { return stdin.Stdin.Read(b[:min(1, len(b))]) }

func (cellHost) Scan(a []any) (int, error)                 { return fmt.Fscan(one{}, a...) }
func (cellHost) Scanf(format string, a []any) (int, error) { return fmt.Fscanf(one{}, format, a...) }
func (cellHost) Scanln(a []any) (int, error)               { return fmt.Fscanln(one{}, a...) }

// Fatal is log.Fatal.
func (h cellHost) Fatal(message string) {
	_ = log.Output(3, message)
	h.Exit(1)
}

// unmark is wire.Unmark.
func unmark(s string) string { return wire.Unmark(s) }
