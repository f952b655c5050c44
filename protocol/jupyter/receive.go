package jupyter

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cellard/cellard/protocol/zmtp"
)

// Stats counts what a kernel sent that never became a Message. None of it ends the
// client. What breaks ZMTP's framing does, as a stream can't be trusted after it.
type Stats struct {
	BadSignatures int64
	Replays       int64 // messages whose signature had come before
	Malformed     int64 // messages that don't keep to the wire protocol
	// Unspilled counts messages that were lost because they were too large for
	// memory and could not be written to a file, UnspilledBytes their bytes.
	Unspilled, UnspilledBytes int64
}

type stats struct {
	badSignatures, replays, malformed, unspilled, unspilledBytes atomic.Int64
}

// Stats returns the counts so far.
func (c *Client) Stats() Stats {
	return Stats{
		BadSignatures:  c.stats.badSignatures.Load(),
		Replays:        c.stats.replays.Load(),
		Malformed:      c.stats.malformed.Load(),
		Unspilled:      c.stats.unspilled.Load(),
		UnspilledBytes: c.stats.unspilledBytes.Load(),
	}
}

// read reads a channel until it ends. It does nothing else: a kernel's iopub drops
// silently what isn't taken.
func (c *Client) read(channel Channel, conn *zmtp.Conn) {
	defer func() {
		if c.reading.Add(-1) == 0 {
			close(c.messages)
			close(c.ended)
		}
		c.wg.Done()
	}()
	for {
		frames, err := conn.Recv()
		if lost := (*zmtp.SpillError)(nil); errors.As(err, &lost) {
			c.stats.unspilled.Add(1)
			c.stats.unspilledBytes.Add(lost.Size)
			continue
		}
		if err != nil {
			c.end(fmt.Errorf("jupyter: the kernel's %s channel ended: %w", channel, err))
			return
		}
		if channel == Heartbeat {
			if !c.takeBeat(frames) {
				return
			}
		} else if !c.take(channel, frames) {
			return
		}
	}
}

// take makes a message of frames and queues it. It is false when the client closes.
func (c *Client) take(channel Channel, frames []*zmtp.Frame) bool {
	m, err := ParseMessage(channel, frames, c.signer)
	if err != nil {
		switch {
		case errors.Is(err, ErrSignature):
			c.stats.badSignatures.Add(1)
		case errors.Is(err, ErrReplay):
			c.stats.replays.Add(1)
		case errors.Is(err, ErrMalformed):
			c.stats.malformed.Add(1)
		default: // its file can't be read
			c.stats.unspilled.Add(1)
			c.stats.unspilledBytes.Add(total(frames))
		}
		for _, f := range frames {
			f.Close()
		}
		return true
	}
	n := min(cost(frames), c.queue) // more than all there is would wait for ever
	if err := c.room.Acquire(c.ctx, n); err != nil {
		m.Close()
		return false
	}
	m.release = func() { c.room.Release(n) }
	select {
	case c.messages <- m:
		return true
	case <-c.ctx.Done():
		m.Close()
		return false
	}
}

// takeBeat gives a heartbeat's answer to who waits for it.
func (c *Client) takeBeat(frames []*zmtp.Frame) bool {
	var b []byte
	if len(frames) == 1 {
		b, _ = frames[0].Bytes()
	}
	for _, f := range frames {
		f.Close()
	}
	select {
	case c.beats <- b:
		return true
	case <-c.ending: // nobody waits any more
		return false
	}
}

// end records why the client ends, the first time, and has finish end it.
func (c *Client) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.ending)
	}
}

// finish gives the readers a moment, when one of them has ended, to read what the
// kernel sent last; then none can go on.
func (c *Client) finish() {
	defer c.wg.Done()
	<-c.ending
	moment := time.NewTimer(lastWords)
	defer moment.Stop()
	select {
	case <-c.ended:
	case <-c.ctx.Done():
	case <-moment.C:
	}
	c.closeConns()
}

// cost is what a message of these frames counts for in the queue.
func cost(frames []*zmtp.Frame) int64 {
	n := int64(overhead + len(frames)*frameOverhead)
	var spilled int64
	for _, f := range frames {
		if f.Spilled() {
			spilled += f.Len()
		} else {
			n += f.Len()
		}
	}
	if spilled > 0 {
		n += spillOverhead + spilled/spillShare
	}
	return n
}

func total(frames []*zmtp.Frame) int64 {
	var n int64
	for _, f := range frames {
		n += f.Len()
	}
	return n
}
