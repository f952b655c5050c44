package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/cellard/cellard/kernels/output"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// read takes frames until Node ends or sends what is none.
func (k *Kernel) read() {
	defer k.wg.Done()
	defer close(k.over)
	for {
		f, err := readFrame(k.p.reader)
		if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrClosed) {
			k.lastWords()
			return
		}
		if err == nil {
			if f.kind == kindStdout || f.kind == kindStderr {
				joinText(k.p.reader, &f)
			}
			err = k.take(f)
		}
		if err != nil {
			k.mu.Lock()
			if k.broken = err; f.kind != kindUp {
				k.broken = fmt.Errorf("what Node sent is not the kernel's: %w", err)
			}
			k.mu.Unlock()
			_ = k.p.cmd.Process.Kill()
			return
		}
	}
}

// lastWords waits for the end of a Node that has closed its pipe, and hands on what it
// printed at the last. One that doesn't end is ended: without the pipe it is of no use.
func (k *Kernel) lastWords() {
	select {
	case <-k.p.ended:
	case <-time.After(endWithin):
		_ = k.p.cmd.Process.Kill()
		<-k.p.ended
	}
	k.p.streams.Drain()
}

// endWithin is what Node gets from closing its pipe to its end. A dump of its memory
// takes long.
const endWithin = 5 * time.Second

// take hands on what a frame brings. An error ends the kernel.
func (k *Kernel) take(f frame) error {
	k.mu.Lock()
	c := k.cells[f.cell]
	k.mu.Unlock()
	switch f.kind {
	case kindUp:
		return k.takeUp(f.payload)
	case kindHello:
		return k.takeHello(f.payload)
	case kindLeave:
		return k.takeLeave(f)
	case kindAnswer:
		return k.takeAnswer(f.payload)
	}
	// What children have written to the pipes was there before this frame.
	if f.kind == kindDone {
		k.p.streams.Drain()
	} else {
		k.p.streams.HandOn()
	}
	if c == nil {
		return k.takeNobodys(f)
	}
	switch f.kind {
	case kindStdout:
		c.Stdout(strings.ToValidUTF8(string(f.payload), "\uFFFD"))
	case kindStderr:
		c.Stderr(strings.ToValidUTF8(string(f.payload), "\uFFFD"))
	case kindResult, kindDisplay, kindClear, kindFile:
		return k.show(c, f)
	case kindDone:
		var d done
		if err := json.Unmarshal(f.payload, &d); err != nil {
			return err
		}
		select {
		case c.done <- d:
		default:
		}
	case kindRead, kindInput, kindBarrier:
		return k.takeQuestion(c, f)
	default:
		return fmt.Errorf("a frame of kind %q", f.kind)
	}
	return nil
}

func (k *Kernel) show(c *running, f frame) error {
	var s shown
	if err := json.Unmarshal(f.payload, &s); err != nil {
		return err
	}
	show := func(b kernel.Bundle) {
		if s.Update {
			c.Update(b, s.Metadata, s.ID)
		} else {
			c.Display(b, s.Metadata, s.ID)
		}
	}
	switch f.kind {
	case kindClear:
		c.Clear(s.Wait)
		return nil
	case kindFile:
		b, err := output.File(s.Path, output.FileLimit())
		if err == nil {
			if b["text/plain"] == s.Path && s.Name != "" {
				b["text/plain"] = s.Name
			}
			show(b)
		}
		k.answer(s.N, "", err)
		return nil
	}
	b, err := s.bundle()
	if err != nil {
		return err
	}
	if f.kind == kindResult {
		c.Result(b, s.Metadata)
	} else {
		show(b)
	}
	return nil
}

func (k *Kernel) takeQuestion(c *running, f frame) error {
	var q question
	if err := json.Unmarshal(f.payload, &q); err != nil {
		return err
	}
	if f.kind == kindBarrier {
		k.answer(q.N, "", nil)
		return nil
	}
	k.wg.Add(1)
	go func() {
		defer k.wg.Done()
		value, err := c.Input(c.ctx, q.Prompt, q.Password)
		if c.ctx.Err() != nil {
			err = errors.New("the cell that asked has ended")
		}
		if f.kind == kindInput {
			k.answer(q.N, value, err)
			return
		}
		reply := map[string]any{"op": "input", "n": q.N, "value": value}
		if err != nil {
			reply["error"] = err.Error()
		}
		k.p.commands.json(reply)
	}()
	return nil
}

// takeNobodys answers what a cell asks that is no longer known; its output is nobody's.
func (k *Kernel) takeNobodys(f frame) error {
	switch f.kind {
	case kindFile, kindInput, kindBarrier:
		var q question
		if err := json.Unmarshal(f.payload, &q); err != nil {
			return err
		}
		if f.kind == kindBarrier {
			k.answer(q.N, "", nil)
		} else {
			k.answer(q.N, "", errors.New("the cell that asked ended long ago"))
		}
	}
	return nil
}

// answer is for the thread that waits in channel.js.
func (k *Kernel) answer(n int64, value string, err error) {
	reply := map[string]any{"n": n, "value": value}
	if err != nil {
		reply["error"] = err.Error()
	}
	k.p.answers.json(reply)
}

// takeUp connects to Node's debugging interface, and has the kernel begin.
func (k *Kernel) takeUp(payload []byte) error {
	var at interfaceAt
	if err := json.Unmarshal(payload, &at); err != nil {
		return err
	}
	if k.watch != nil {
		return errors.New("a second debugging interface")
	}
	w, err := newWatch(at)
	if err != nil {
		return err
	}
	k.watch = w
	k.p.commands.json(map[string]any{"op": "begin"})
	return nil
}

// takeLeave answers the main thread, which waits.
func (k *Kernel) takeLeave(f frame) error {
	var q struct {
		N        int64
		Absorbed bool
	}
	if err := json.Unmarshal(f.payload, &q); err != nil {
		return err
	}
	if k.watch == nil {
		return errors.New("a question before the begin")
	}
	k.wg.Add(1)
	go func() {
		defer k.wg.Done()
		k.p.answers.json(map[string]any{"n": q.N, "coming": k.watch.leave(f.cell, q.Absorbed)})
	}()
	return nil
}

func (k *Kernel) takeHello(payload []byte) error {
	var hello struct{ Version string }
	if err := json.Unmarshal(payload, &hello); err != nil {
		return err
	}
	select {
	case <-k.hello:
		return errors.New("a second hello")
	default:
	}
	k.version = strings.TrimPrefix(hello.Version, "v")
	close(k.hello)
	return nil
}

func (k *Kernel) takeAnswer(payload []byte) error {
	var a struct{ N int64 }
	if err := json.Unmarshal(payload, &a); err != nil {
		return err
	}
	k.mu.Lock()
	answer := k.answers[a.N]
	delete(k.answers, a.N)
	k.mu.Unlock()
	if answer != nil {
		answer <- payload
	}
	return nil
}
