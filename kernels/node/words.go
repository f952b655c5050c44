package node

import (
	"context"
	"strings"
	"sync"

	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// words keeps the first of what Node prints before any cell, to tell why it did not
// start. It is a kernel.Sink.
type words struct {
	mu   sync.Mutex
	text strings.Builder
}

// maxWords bounds them, in bytes.
const maxWords = 4096

func (w *words) Publish(_ string, content any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, ok := content.(jupyter.Stream); ok {
		room := maxWords - w.text.Len()
		w.text.WriteString(s.Text[:min(len(s.Text), max(room, 0))])
	}
}

func (w *words) Input(context.Context, string, bool) (string, error) {
	return "", kernel.ErrStdinNotAllowed
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(w.text.String(), "\uFFFD"))
}
