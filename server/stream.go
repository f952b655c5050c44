package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/protocol/api"
)

// follow answers with the events of e after the one numbered after, as NDJSON. The
// headers go out at once, lines as they come, those that are there together in one
// write. Lines that are no event of the log, the ping and what stands in for the last
// line, have the seq of the event before them and are not counted.
//
// The last line is an execution's or a failure's whatever happens: when ctx ends by
// errWaited, it is the execution as it is. gone tells that the reader went away
// before it.
func (s *Server) follow(ctx context.Context, c *call, e *execution.Execution, after int64) (gone bool, err error) {
	c.w.Header().Set("Content-Type", "application/x-ndjson")
	c.w.WriteHeader(http.StatusOK)
	out := &lines{w: c.w, flush: http.NewResponseController(c.w), seq: after}
	if err := out.flush.Flush(); err != nil {
		return true, err
	}
	events := e.Events(after)
	for {
		quiet, end := context.WithTimeout(ctx, s.o.Ping)
		b, err := events.Next(quiet)
		end()
		switch {
		case err == nil:
			err = out.write(b)
		case errors.Is(err, io.EOF):
			if out.any {
				return false, nil
			}
			// Attached after its last event: say that it is over all the same.
			return false, out.last(e)
		case errors.Is(err, execution.ErrFreed):
			return false, out.fail(api.Errorf(api.CodeGone, "execution %s is no longer kept", e.ID()).WithHint("read a stream sooner, or keep more: --retention and --retention-memory"))
		case context.Cause(ctx) == errWaited:
			return false, out.last(e)
		case ctx.Err() != nil:
			return true, ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			err = out.event(api.Event{K: api.KindPing})
		default: // the log can't be read back from the disk
			c.log.Error("an execution's events can't be read", "execution", e.ID(), "context", e.ContextID(), "error", err)
			return false, out.fail(api.Errorf(api.CodeInternal, "the events can't be read: %v", err).WithHint("GET the execution itself"))
		}
		if err != nil {
			return true, err
		}
	}
}

// lines writes NDJSON.
type lines struct {
	w     io.Writer
	flush *http.ResponseController
	seq   int64
	any   bool // events of the log were written
}

func (l *lines) write(b []byte) error {
	l.any = true
	l.seq = lastSeq(b, l.seq)
	return l.put(b)
}

func (l *lines) put(b []byte) error {
	if _, err := l.w.Write(b); err != nil {
		return err
	}
	return l.flush.Flush()
}

// event writes a line that is not of the log.
func (l *lines) event(ev api.Event) error {
	ev.Seq = l.seq
	b, err := api.Marshal(ev)
	if err != nil {
		return err
	}
	return l.put(append(b, '\n'))
}

func (l *lines) fail(e *api.Error) error {
	return l.event(api.Event{K: api.KindFailure, Failure: e})
}

// last writes the last line of e as it is now.
func (l *lines) last(e *execution.Execution) error {
	x, failure := e.Snapshot()
	if failure != nil {
		return l.fail(failure)
	}
	return l.event(api.Event{K: api.KindExecution, Execution: &x})
}

// lastSeq is the seq of the last of b's lines, which api.Event writes as their last
// member.
func lastSeq(b []byte, before int64) int64 {
	i := bytes.LastIndex(b, []byte(`"seq":`))
	if i < 0 {
		return before
	}
	digits, _, _ := bytes.Cut(b[i+len(`"seq":`):], []byte("}"))
	if n, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
		return n
	}
	return before
}
