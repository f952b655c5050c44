package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// executionHeader has the execution's id before its first event comes.
const executionHeader = "Cellard-Execution"

// Run runs a cell and waits for its end, or for req.WaitMs. It is a Stream that is read
// to its end, so that a machine that is gone is noticed however long the cell takes.
// When ctx ends first, the agent interrupts the cell, unless
// req.InterruptOnDisconnect says otherwise.
func (c *Client) Run(ctx context.Context, req api.RunRequest) (*api.Execution, error) {
	s, err := c.Stream(ctx, req)
	if err != nil {
		return nil, err
	}
	return s.Wait()
}

// Stream runs a cell; its events are read from the Stream that it returns, once the agent
// has taken the cell. The caller reads it to its end, or closes it. ctx bounds the
// stream as a whole.
func (c *Client) Stream(ctx context.Context, req api.RunRequest) (*Stream, error) {
	req.Stream = true
	if req.RequestID != "" {
		ctx = api.WithRequestID(ctx, req.RequestID)
	}
	key := req.IdempotencyKey
	if key != "" && c.instance.Load() == nil {
		if _, err := c.Health(ctx); err != nil {
			return nil, err
		}
	}
	body, err := api.Marshal(req)
	if err != nil {
		return nil, err
	}
	return c.stream(ctx, request{method: "POST", path: "/v1/interpreter:run", body: body, key: key}, 0, req.WaitMs != nil)
}

// Attach gives the events of an execution after the one numbered after, 0 for all of
// them, and then those to come. The caller reads it to its end, or closes it.
func (c *Client) Attach(ctx context.Context, id string, after int64) (*Stream, error) {
	return c.stream(ctx, attach(id, after), after, false)
}

func attach(id string, after int64) request {
	return request{method: "GET", path: execution(id) + "/events?after=" + strconv.FormatInt(after, 10), again: true}
}

func (c *Client) stream(ctx context.Context, r request, after int64, waits bool) (*Stream, error) {
	r.timeout = c.o.AnswerTimeout
	a, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	s := &Stream{c: c, ctx: ctx, id: a.Header.Get(executionHeader), seq: after, waits: waits}
	s.open(a)
	return s, nil
}

// Stream is the events of one execution. It is one goroutine's at a time, but for ID.
type Stream struct {
	c     *Client
	ctx   context.Context
	id    string
	seq   int64   // of the last event that came
	waits bool    // waitMs bounds it
	a     *answer // nil once closed
	req   string  // id of the request, as the agent says
	lines *bufio.Reader
	tries int   // to attach, since the last line
	cut   error // what the last of them ended with
	x     *api.Execution
	err   error // io.EOF after the last line
}

func (s *Stream) open(a *answer) {
	s.a, s.req, s.lines = a, a.requestID(), bufio.NewReaderSize(a, 64<<10)
}

// RequestID is the id by which the agent's log knows the request; of a stream that was
// attached to again, the last one.
func (s *Stream) RequestID() string { return s.req }

// ID is the execution's.
func (s *Stream) ID() string { return s.id }

// Seq is the number of the last event that came: attach after it.
func (s *Stream) Seq() int64 { return s.seq }

// Events are the events as they come, the last one the Execution; pings are left out. An
// error is the last of the pairs: an *api.Error where the agent gave a failure in place
// of an Execution. The stream is closed when the loop ends, also by a break; a cell that
// nobody else reads is then interrupted, unless its request said otherwise.
func (s *Stream) Events() iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		defer s.Close()
		for {
			ev, err := s.Next()
			if errors.Is(err, io.EOF) || !yield(ev, err) || err != nil {
				return
			}
		}
	}
}

// Wait reads what is left, and returns the Execution; its status is running where waitMs
// was over first.
func (s *Stream) Wait() (*api.Execution, error) {
	defer s.Close()
	for {
		if _, err := s.Next(); errors.Is(err, io.EOF) {
			return s.x, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// Close ends the stream. It may be called more than once.
func (s *Stream) Close() {
	s.closeAnswer()
	if s.err == nil {
		s.err = errors.New("the stream was closed")
	}
}

// Next is the next event that is no ping; io.EOF after the Execution. What broke off is
// attached to again.
func (s *Stream) Next() (api.Event, error) {
	for s.err == nil {
		ev, err := s.event()
		if err != nil {
			x, err := s.again(err)
			if x == nil || err != nil {
				s.err = err
				continue
			}
			ev = api.Event{K: api.KindExecution, Seq: s.seq, Execution: x}
		}
		before := s.seq
		s.seq = max(s.seq, ev.Seq)
		switch ev.K {
		case api.KindPing:
			s.tries = 0
			continue
		case api.KindExecution:
			s.finish(ev.Execution)
			return ev, nil
		case api.KindFailure:
			ev.Failure.RequestID = s.req
			s.err = ev.Failure
			return api.Event{}, s.err
		}
		if ev.Seq > before { // else it has come already
			s.tries = 0
			return ev, nil
		}
	}
	return api.Event{}, s.err
}

// finish takes the last line. What follows it is only the body's end, which is read so
// that the connection can be used again.
func (s *Stream) finish(x *api.Execution) {
	s.x, s.err = x, io.EOF
	if s.a != nil {
		s.a.timer.Reset(time.Second)
		_, _ = io.CopyN(io.Discard, s.lines, 1)
		s.closeAnswer()
	}
}

func (s *Stream) event() (ev api.Event, err error) {
	if s.a == nil {
		return ev, s.cut // the last try to attach failed too
	}
	var line []byte
	for {
		part, err := s.lines.ReadSlice('\n')
		if int64(len(line)+len(part)) > s.c.o.MaxAnswer {
			return ev, errTooLarge
		}
		line = append(line, part...)
		if err == nil {
			break
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return ev, err
		}
	}
	if err := json.Unmarshal(line, &ev); err != nil {
		return ev, &badLine{err}
	}
	if ev.K == api.KindExecution && ev.Execution == nil || ev.K == api.KindFailure && ev.Failure == nil {
		return ev, &badLine{fmt.Errorf("%.100q", line)}
	}
	return ev, nil
}

// badLine is a line that is no event: no use in asking for it again.
type badLine struct{ err error }

func (e *badLine) Error() string { return "a line of the stream is no event: " + e.err.Error() }

// again attaches to the execution after a stream of it broke off with err. Where waitMs
// bounds the stream it asks for the execution as it is, for the agent knows no waitMs of
// an attach.
func (s *Stream) again(err error) (*api.Execution, error) {
	var bad *badLine
	s.closeAnswer()
	if s.ctx.Err() != nil {
		return nil, context.Cause(s.ctx)
	}
	if errors.As(err, &bad) || errors.Is(err, errTooLarge) || s.id == "" || s.tries >= s.c.o.Retries {
		return nil, fmt.Errorf("the stream of execution %s (request %s) broke off: %w", s.id, cmp.Or(s.req, "unknown"), err)
	}
	if e := s.c.pause(s.ctx, s.tries); e != nil {
		return nil, e
	}
	s.tries++
	if s.waits {
		return s.c.Execution(s.ctx, s.id)
	}
	r := attach(s.id, s.seq)
	r.timeout = s.c.o.AnswerTimeout
	a, e := s.c.sendOnce(s.ctx, r)
	var refusal *api.Error
	switch {
	case e == nil:
		s.open(a)
	case errors.As(e, &refusal) && refusal.HTTPStatus() < http.StatusInternalServerError && refusal.Code != api.CodeBusy:
		return nil, fmt.Errorf("the stream of execution %s broke off (%w), and it can't be attached to again: %w", s.id, err, e)
	}
	s.cut = e // and event leads here again
	return nil, nil
}

func (s *Stream) closeAnswer() {
	if s.a != nil {
		s.a.Close()
		s.a = nil
	}
}

func execution(id string) string { return "/v1/executions/" + url.PathEscape(id) }

// Execution asks for an execution as it is, running or over.
func (c *Client) Execution(ctx context.Context, id string) (*api.Execution, error) {
	var x api.Execution
	if err := c.call(ctx, request{method: "GET", path: execution(id)}, nil, &x); err != nil {
		return nil, err
	}
	return &x, nil
}

// InterruptExecution stops an execution that runs, or takes it out of its queue. False:
// it was over.
func (c *Client) InterruptExecution(ctx context.Context, id string) (bool, error) {
	var done struct{ Interrupted bool }
	err := c.call(ctx, request{method: "POST", path: execution(id) + ":interrupt", again: true}, nil, &done)
	return done.Interrupted, err
}

// Input answers the input event of a cell that was run with Stdin.Live.
func (c *Client) Input(ctx context.Context, id, value string) error {
	var done struct{ Accepted bool }
	return c.call(ctx, request{method: "POST", path: execution(id) + ":input"}, api.InputRequest{Value: value}, &done)
}
