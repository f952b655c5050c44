package live

import (
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"
)

// stream is stdout or stderr, by the goroutine that writes: a cell that is over has its
// text sent in its own name.
type stream struct {
	name string
	file *os.File
}

// Write writes to the process's descriptor where the cell runs.
func (s stream) Write(b []byte) (int, error) {
	if c := ofGoroutine(); c != nil && c.over.Load() {
		c.late(s.name, string(b))
		return len(b), nil
	}
	return s.file.Write(b)
}

// of gives the stream behind a writer that is one of the process's own.
func of(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		switch f {
		case os.Stdout:
			return stream{"stdout", f}
		case os.Stderr:
			return stream{"stderr", f}
		}
	}
	return w
}

// Logs makes the standard logger know cells.
func Logs() { log.SetOutput(stream{"stderr", os.Stderr}) }

// The twins of package fmt's functions know the cell that prints.

func Print(a ...any) (int, error)            { return fmt.Fprint(of(os.Stdout), a...) }
func Printf(f string, a ...any) (int, error) { return fmt.Fprintf(of(os.Stdout), f, a...) }
func Println(a ...any) (int, error)          { return fmt.Fprintln(of(os.Stdout), a...) }

func Fprint(w io.Writer, a ...any) (int, error)            { return fmt.Fprint(of(w), a...) }
func Fprintf(w io.Writer, f string, a ...any) (int, error) { return fmt.Fprintf(of(w), f, a...) }
func Fprintln(w io.Writer, a ...any) (int, error)          { return fmt.Fprintln(of(w), a...) }

func Sprint(a ...any) string            { return unmark(fmt.Sprint(a...)) }
func Sprintf(f string, a ...any) string { return unmark(fmt.Sprintf(f, a...)) }
func Sprintln(a ...any) string          { return unmark(fmt.Sprintln(a...)) }

// Fatal and its kin are package log's twins.
func Fatal(a ...any)            { log.Output(2, fmt.Sprint(a...)); Exit(1) }
func Fatalf(f string, a ...any) { log.Output(2, fmt.Sprintf(f, a...)); Exit(1) }
func Fatalln(a ...any)          { log.Output(2, fmt.Sprintln(a...)); Exit(1) }

// AfterFunc is time.AfterFunc's twin: the runtime starts its goroutine, which would be
// no cell's.
func AfterFunc(d time.Duration, f func()) *time.Timer {
	c := ofGoroutine()
	if c == nil {
		return time.AfterFunc(d, f)
	}
	return time.AfterFunc(d, func() {
		c.adopt()
		defer Guard(c)
		Check()
		f()
	})
}

// mark is before the names of users' own that had to be exported (see package compiler).
const mark = "\uA7F5"

func unmark(s string) string {
	if !strings.Contains(s, mark) {
		return s
	}
	return strings.ReplaceAll(s, mark, "")
}
