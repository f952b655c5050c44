package kernel

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/zmtp"
)

// stdinWithin is how long a front end may take to connect its stdin channel.
const stdinWithin = 10 * time.Second

// errNoStdin is for the user.
var errNoStdin = errors.New("the front end said that it takes questions, but has no stdin channel")

// asking is the question that waits for an answer: one at a time.
type asking struct {
	turn sync.Mutex // held while one waits

	mu      sync.Mutex
	peer    []byte        // whose answer is waited for; nil: nobody's
	answers chan<- string // of one element
}

// input asks the front end that sent a request: it knows its stdin by the identity that
// its shell has too (the spec's "Messages on the stdin (ROUTER/DEALER) channel").
func (s *server) input(ctx context.Context, r request, prompt string, password bool) (string, error) {
	s.asking.turn.Lock()
	defer s.asking.turn.Unlock()
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	answered := make(chan string, 1)
	s.asking.mu.Lock()
	s.asking.peer, s.asking.answers = r.peer, answered
	s.asking.mu.Unlock()
	defer func() {
		s.asking.mu.Lock()
		s.asking.peer, s.asking.answers = nil, nil
		s.asking.mu.Unlock()
	}()
	frames := append(append([][]byte{}, r.Identities...), s.frames("input_request", &r.Header, jupyter.InputRequest{Prompt: prompt, Password: password})...)
	for end := time.Now().Add(stdinWithin); ; {
		err := s.stdin.SendTo(r.peer, frames...)
		if err == nil {
			break
		}
		if !errors.Is(err, zmtp.ErrNoPeer) || time.Now().After(end) {
			return "", errNoStdin
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-s.ctx.Done():
			return "", ErrShutdown
		}
	}
	select {
	case value := <-answered:
		return value, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-s.ctx.Done():
		return "", ErrShutdown
	}
}

// onStdin takes an answer. One that nobody waits for is dropped: it is late, or not
// from the front end that was asked.
func (s *server) onStdin(peer []byte, frames []*zmtp.Frame) {
	r, ok := s.parse(jupyter.Stdin, peer, frames)
	if !ok {
		return
	}
	defer r.Close()
	var c jupyter.InputReply
	if r.Header.MsgType != "input_reply" || r.Content.Decode(&c, maxMessage) != nil {
		s.stats.Malformed.Add(1)
		return
	}
	s.asking.mu.Lock()
	answers := s.asking.answers
	if answers != nil && bytes.Equal(s.asking.peer, peer) {
		s.asking.answers = nil // one answer a question
		answers <- c.Value
	}
	s.asking.mu.Unlock()
}
