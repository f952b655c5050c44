package live

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// Stdin stands for os.Stdin where a cell reads it: each line is asked for.
var Stdin = &input{File: os.Stdin}

type input struct {
	*os.File
	mu   sync.Mutex
	rest string
}

// Read asks the front end for a line when none is left.
func (i *input) Read(b []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(b) == 0 {
		return 0, nil
	}
	if i.rest == "" {
		c := ofGoroutine()
		if c == nil || c.over.Load() {
			return 0, io.EOF
		}
		line, err := Ask(c)
		Check()
		if err != nil {
			return 0, err
		}
		i.rest = strings.TrimSuffix(line, "\n") + "\n"
	}
	n := copy(b, i.rest)
	i.rest = i.rest[n:]
	return n, nil
}

// WriteTo is for io.Copy, which would else read the file.
func (i *input) WriteTo(w io.Writer) (n int64, err error) {
	return io.Copy(w, struct{ io.Reader }{i})
}

// runes reads one byte at a time, so that Scan takes no more than it needs.
type runes struct{ i *input }

func (r runes) Read(b []byte) (int, error) { return r.i.Read(b[:min(1, len(b))]) }

func Scan(a ...any) (int, error)            { return fmt.Fscan(runes{Stdin}, a...) }
func Scanf(f string, a ...any) (int, error) { return fmt.Fscanf(runes{Stdin}, f, a...) }
func Scanln(a ...any) (int, error)          { return fmt.Fscanln(runes{Stdin}, a...) }
