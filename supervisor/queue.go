package supervisor

import (
	"errors"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/protocol/api"
)

var errShut = errors.New("the context is being deleted")

// enqueue adds a cell to the queue; errShut when the session takes no more.
func (s *session) enqueue(t *task) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return errShut
	}
	if len(s.queue) >= s.m.o.MaxQueue {
		return api.Errorf(api.CodeBusy, "%d cells are waiting in context %s already", len(s.queue), s.id).
			WithHint("wait for some to end, or run in another context")
	}
	s.queue = append(s.queue, t)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// dequeue takes a waiting cell out; false when it doesn't wait (any more).
func (s *session) dequeue(e *execution.Execution) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, t := range s.queue {
		if t.e == e {
			s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
			return true
		}
	}
	return false
}

// requeue puts a cell back to the head of the queue.
func (s *session) requeue(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append([]*task{t}, s.queue...)
}

func (s *session) takeQueue() []*task {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queue
	s.queue = nil
	return q
}
