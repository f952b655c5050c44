// Package stdin stands for os.Stdin in cells that read it.
package stdin

import (
	"io"
	"os"
	"strings"
	"sync"
)

// Ask asks the front end for a line. The worker sets it.
var Ask = func() (string, error) { return "", io.EOF }

// Stdin reads lines that are asked for one by one.
var Stdin = &Input{File: os.Stdin}

// Input is a reader that asks. Its other methods are those of the process's own stdin,
// which is empty.
type Input struct {
	*os.File
	mu   sync.Mutex
	rest string
}

// Read asks for a line when none is left.
func (i *Input) Read(b []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(b) == 0 {
		return 0, nil
	}
	if i.rest == "" {
		line, err := Ask()
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
func (i *Input) WriteTo(w io.Writer) (n int64, err error) {
	return io.Copy(w, struct{ io.Reader }{i})
}

// Forget drops what was read of a line and not used: it was an earlier cell's.
func (i *Input) Forget() {
	i.mu.Lock()
	i.rest = ""
	i.mu.Unlock()
}
