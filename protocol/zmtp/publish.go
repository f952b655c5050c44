package zmtp

import (
	"bytes"
	"fmt"
	"sync"
	"time"
)

// The bounds of a subscriber.
const (
	// queueBytes is how much may wait for a subscriber before Publish waits too;
	// queueMost, how much PublishNow may add to that before the subscriber is given
	// up.
	queueBytes = 1 << 20
	queueMost  = 4 << 20
	// writeBytes is what is written at once: the messages that wait are joined, and
	// a large one is cut, so that it shows whether the subscriber takes anything.
	writeBytes = 64 << 10

	maxSubscriptions = 64
	messageOverhead  = 64 // what a message costs besides its bytes
)

// Publisher is a bound PUB that drops nothing (libzmq's ZMQ_XPUB_NODROP): Publish
// waits for the slowest subscriber. Its methods can be called from any goroutine.
type Publisher struct {
	binding
	welcome func(prefix []byte) [][]byte

	mu     sync.Mutex
	moved  *sync.Cond // something was taken, or a subscriber went
	subs   map[*subscriber]bool
	closed bool
}

type subscriber struct {
	c        *Conn
	prefixes [][]byte
	queue    [][]byte // messages as they go on the wire
	bytes    int      // of the queue, and of what is being written
	wake     chan struct{}
	since    time.Time // of the last bytes taken, or of the first that wait
	gone     bool
}

// BindPublisher makes a publisher that listens at a path (network "unix") or a
// host:port ("tcp"). welcome, which may be nil, makes a message that a subscriber is
// sent when its subscription has come, whatever its topic. The caller closes the
// Publisher.
func BindPublisher(network, address string, o Options, welcome func(prefix []byte) [][]byte) (*Publisher, error) {
	p := &Publisher{binding: binding{typ: Pub, o: o}, welcome: welcome, subs: make(map[*subscriber]bool)}
	p.moved = sync.NewCond(&p.mu)
	p.serve = p.follow
	if err := p.listen(network, address); err != nil {
		return nil, err
	}
	return p, nil
}

// follow takes a subscriber's subscriptions, and has another goroutine write to it.
func (p *Publisher) follow(c *Conn) {
	s := &subscriber{c: c, wake: make(chan struct{}, 1)}
	p.mu.Lock()
	p.subs[s] = true
	p.mu.Unlock()
	written := make(chan struct{})
	go func() {
		defer close(written)
		p.write(s)
		c.Close() // ends Recv below
	}()
	for {
		frames, err := c.Recv()
		if err != nil {
			break
		}
		p.subscription(s, frames)
		closeFrames(frames)
	}
	p.drop(s)
	<-written
}

// subscription takes a subscription or its end: a byte 1 or 0, and the prefix.
func (p *Publisher) subscription(s *subscriber, frames []*Frame) {
	b, ok := frames[0].Bytes()
	if len(frames) != 1 || !ok || len(b) == 0 || b[0] > 1 {
		return // what XSUBs can send besides means nothing here
	}
	prefix := bytes.Clone(b[1:])
	p.mu.Lock()
	defer p.mu.Unlock()
	if b[0] == 0 {
		for i, have := range s.prefixes {
			if bytes.Equal(have, prefix) {
				s.prefixes = append(s.prefixes[:i], s.prefixes[i+1:]...)
				return
			}
		}
		return
	}
	if len(s.prefixes) == maxSubscriptions {
		return
	}
	s.prefixes = append(s.prefixes, prefix)
	if p.welcome != nil {
		if frames := p.welcome(prefix); frames != nil {
			p.add(s, wire(frames))
		}
	}
}

// Publish sends a message to the subscribers whose prefixes its first frame begins
// with. It waits while too much waits for one of them. After Close it returns at once,
// and the message goes nowhere.
func (p *Publisher) Publish(frames ...[]byte) { p.publish(frames, true) }

// PublishNow is Publish without the wait, for what is small and may not wait. A
// subscriber for whom far too much waits is given up.
func (p *Publisher) PublishNow(frames ...[]byte) { p.publish(frames, false) }

func (p *Publisher) publish(frames [][]byte, wait bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for wait && !p.closed && p.behind(frames[0]) {
		p.moved.Wait()
	}
	if p.closed {
		return
	}
	var message []byte
	for s := range p.subs {
		if s.wants(frames[0]) {
			if message == nil {
				message = wire(frames)
			}
			p.add(s, message)
		}
	}
}

// behind tells whether a subscriber of that topic has enough waiting for it. The
// caller holds mu, as for all of the below.
func (p *Publisher) behind(topic []byte) bool {
	for s := range p.subs {
		if s.bytes >= queueBytes && s.wants(topic) {
			return true
		}
	}
	return false
}

func (s *subscriber) wants(topic []byte) bool {
	for _, prefix := range s.prefixes {
		if bytes.HasPrefix(topic, prefix) {
			return true
		}
	}
	return false
}

func (p *Publisher) add(s *subscriber, message []byte) {
	if s.bytes >= queueMost {
		p.remove(s)
		return
	}
	if s.bytes == 0 {
		s.since = time.Now()
	}
	s.queue = append(s.queue, message)
	s.bytes += len(message) + messageOverhead
	s.signal()
}

func (s *subscriber) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// remove gives a subscriber up: what waits for it is forgotten.
func (p *Publisher) remove(s *subscriber) {
	s.gone, s.queue, s.bytes = true, nil, 0
	delete(p.subs, s)
	_ = s.c.Close()
	s.signal()
	p.moved.Broadcast()
}

func (p *Publisher) drop(s *subscriber) {
	p.mu.Lock()
	p.remove(s)
	p.mu.Unlock()
}

// write writes what waits for a subscriber, until it is gone.
func (p *Publisher) write(s *subscriber) {
	buf := make([]byte, 0, 4<<10)
	for range s.wake {
		for {
			batch, cost, gone := p.take(s, &buf)
			if gone {
				return
			}
			if cost == 0 {
				break
			}
			err := s.c.writeWire(batch, func() {
				p.mu.Lock()
				s.since = time.Now()
				p.mu.Unlock()
			})
			if err != nil {
				p.drop(s)
				return
			}
			p.mu.Lock()
			if !s.gone {
				s.bytes -= cost
			}
			p.moved.Broadcast()
			p.mu.Unlock()
		}
	}
}

// take takes what is written next: one message, or several that are small, joined in
// buf.
func (p *Publisher) take(s *subscriber, buf *[]byte) (batch []byte, cost int, gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.gone {
		return nil, 0, true
	}
	n, size := 0, 0
	for n < len(s.queue) && (n == 0 || size+len(s.queue[n]) <= writeBytes) {
		size += len(s.queue[n])
		n++
	}
	switch n {
	case 0:
		return nil, 0, false
	case 1:
		batch = s.queue[0] // which other subscribers may have too
	default:
		batch = (*buf)[:0]
		for _, m := range s.queue[:n] {
			batch = append(batch, m...)
		}
		*buf = batch
	}
	clear(s.queue[:n])
	if s.queue = s.queue[n:]; len(s.queue) == 0 {
		s.queue = nil
	}
	return batch, size + n*messageOverhead, false
}

// DropStuck gives up the subscribers that have taken nothing for that long of what
// waits for them.
func (p *Publisher) DropStuck(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.subs {
		if s.bytes > 0 && time.Since(s.since) >= after {
			p.remove(s)
		}
	}
}

// Close ends the publisher once its subscribers have taken what waits for them; one
// that takes nothing for linger is given up, and all after ten times that. Whoever is
// in Publish returns. It can be called twice.
func (p *Publisher) Close(linger time.Duration) {
	p.mu.Lock()
	p.closed = true
	p.moved.Broadcast()
	p.mu.Unlock()
	for end := time.Now().Add(10 * linger); time.Now().Before(end); {
		p.DropStuck(linger)
		if !p.waiting() {
			break
		}
		time.Sleep(min(linger/10+time.Millisecond, 5*time.Millisecond))
	}
	p.mu.Lock()
	for s := range p.subs {
		p.remove(s)
	}
	p.mu.Unlock()
	p.close()
}

func (p *Publisher) waiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.subs {
		if s.bytes > 0 {
			return true
		}
	}
	return false
}

// wire is a message as it goes on the wire.
func wire(frames [][]byte) []byte {
	n := len(frames) * maxHeader
	for _, f := range frames {
		n += len(f)
	}
	b := make([]byte, 0, n)
	for i, f := range frames {
		b = append(appendHeader(b, frameFlags(0, i, frames), len(f)), f...)
	}
	return b
}

// writeWire writes whole messages however long the peer takes, in pieces, and tells
// of each.
func (c *Conn) writeWire(b []byte, progress func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sendErr == nil {
		c.sendErr = c.nc.SetWriteDeadline(time.Time{})
	}
	for len(b) > 0 && c.sendErr == nil {
		var n int
		n, c.sendErr = c.nc.Write(b[:min(len(b), writeBytes)])
		b = b[n:]
		progress()
	}
	if c.sendErr != nil {
		return fmt.Errorf("zmtp: publish: %w", c.sendErr)
	}
	return nil
}
