package java

import (
	"context"
	"encoding/json"

	"github.com/cellard/cellard/kernels/output"
	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// lateCells is how many finished cells are remembered for what their threads still put
// out. The agent remembers as many.
const lateCells = 256

// cell is one that Java knows by its id.
type cell struct {
	id  uint64
	ctx context.Context
	// to is where its output goes: a copy without the code, which may be large.
	to       kernel.Cell
	decoders [2]mime.Decoder
	end      chan *frame // of one element: Java's word that it is over
}

func (l *Language) begin(ctx context.Context, c *kernel.Cell) *cell {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	running := &cell{id: l.last, ctx: ctx, to: *c, end: make(chan *frame, 1)}
	running.to.Code = ""
	l.cells[running.id] = running
	delete(l.cells, running.id-lateCells)
	return running
}

func (l *Language) finish(c *cell) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Its questions are over with it.
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(kernel.ErrStdinNotAllowed)
	c.ctx = ctx
}

// cell is the cell of an id, and what bounds its questions; nil for one that is
// forgotten, or never was.
func (l *Language) cell(id uint64) (*cell, context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.cells[id]
	if c == nil {
		return nil, nil
	}
	return c, c.ctx
}

// print hands on what a cell printed.
func (c *cell) print(stderr bool, b []byte) {
	if stderr {
		c.to.Stderr(c.decoders[1].Write(b))
	} else {
		c.to.Stdout(c.decoders[0].Write(b))
	}
}

// flush hands on what was the beginning of a character.
func (c *cell) flush() {
	c.to.Stdout(c.decoders[0].Flush())
	c.to.Stderr(c.decoders[1].Flush())
}

// show hands on a bundle.
func (c *cell) show(kind byte, f *frame) {
	id := f.text()
	data := kernel.Bundle{}
	for range f.count() {
		mimeType, isJSON, value := f.text(), f.flag(), f.bytes()
		if f.bad {
			return
		}
		if isJSON && json.Valid(value) {
			data[mimeType] = json.RawMessage(value)
		} else {
			data[mimeType] = string(value)
		}
	}
	c.put(kind, data, id)
}

func (c *cell) put(kind byte, data kernel.Bundle, id string) {
	switch kind {
	case fromResult:
		c.to.Result(data, nil)
	case fromUpdate:
		c.to.Update(data, nil, id)
	default:
		c.to.Display(data, nil, id)
	}
}

// file shows a file; the error is for the cell.
func (c *cell) file(name, path, id string, update bool, limit int64) error {
	data, err := output.File(path, limit)
	if err != nil {
		return err
	}
	data["text/plain"] = name
	kind := byte(fromDisplay)
	if update {
		kind = fromUpdate
	}
	c.put(kind, data, id)
	return nil
}
