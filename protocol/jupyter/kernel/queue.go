package kernel

import (
	"sync"

	"github.com/cellard/cellard/protocol/jupyter"
)

// The bounds of the queue: how many requests, and bytes of them, wait at most. A first
// one is taken whatever its size.
const (
	queueRequests = 1024
	queueBytes    = maxMessage
)

// request is a message with the peer that it came from, whose socket answers it.
type request struct {
	*jupyter.Message
	peer []byte
	size int64
}

// queue holds the requests that wait for the language.
type queue struct {
	mu     sync.Mutex
	moved  *sync.Cond
	list   []request
	bytes  int64
	closed bool
}

func newQueue() *queue {
	q := &queue{}
	q.moved = sync.NewCond(&q.mu)
	return q
}

// add waits until there is room. A closed queue takes nothing.
func (q *queue) add(r request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && len(q.list) > 0 && (len(q.list) >= queueRequests || q.bytes+r.size > queueBytes) {
		q.moved.Wait()
	}
	if q.closed {
		r.Close()
		return
	}
	q.list = append(q.list, r)
	q.bytes += r.size
	q.moved.Broadcast()
}

// next waits for a request; false after close.
func (q *queue) next() (request, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && len(q.list) == 0 {
		q.moved.Wait()
	}
	if q.closed {
		return request{}, false
	}
	r := q.list[0]
	q.list[0] = request{}
	if q.list = q.list[1:]; len(q.list) == 0 {
		q.list = nil
	}
	q.bytes -= r.size
	q.moved.Broadcast()
	return r, true
}

// waiting takes all that waits now.
func (q *queue) waiting() []request {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list, q.bytes = nil, 0
	q.moved.Broadcast()
	return list
}

// close forgets what waits, and ends the waits.
func (q *queue) close() {
	for _, r := range q.waiting() {
		r.Close()
	}
	q.mu.Lock()
	q.closed = true
	q.moved.Broadcast()
	q.mu.Unlock()
}
