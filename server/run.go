package server

import (
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/protocol/api"
)

// ExecutionHeader is the header of a run's answer that has the execution's id, so
// that a host whose stream breaks before the first line can attach again.
const ExecutionHeader = "Cellard-Execution"

const keyHeader = "Idempotency-Key"

// maxMs is the longest time that a time.Duration can hold.
const maxMs = math.MaxInt64 / int64(time.Millisecond)

// run is POST /v1/interpreter:run.
func (s *Server) run(c *call) error {
	req, err := decodeRun(c.body, c.r.Header)
	if err != nil {
		return err
	}
	req.RequestID = c.requestID
	run, err := s.o.Manager.Run(req)
	if err != nil {
		return err
	}
	c.body, req.Code = nil, "" // they may be large, and the cell may wait for long
	gone := true
	defer func() { run.Leave(gone) }()
	c.w.Header().Set(ExecutionHeader, run.ID())

	ctx := c.r.Context()
	if req.WaitMs != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(*req.WaitMs)*time.Millisecond, errWaited)
		defer cancel()
	}
	if req.Stream {
		gone, err = s.follow(ctx, c, run.Execution, 0)
		return err
	}
	select {
	case <-run.Done():
	case <-ctx.Done():
		if context.Cause(ctx) != errWaited {
			return ctx.Err()
		}
	}
	gone = false
	return c.replyExecution(run.Execution)
}

// errWaited ends a context when waitMs is over.
var errWaited = errors.New("waitMs is over")

// replyExecution answers with an execution as it is now, or with the refusal that it
// ended with.
func (c *call) replyExecution(e *execution.Execution) error {
	x, failure := e.Snapshot()
	if failure != nil {
		return failure
	}
	return c.reply(http.StatusOK, x)
}

// decodeRun reads a run's body and its Idempotency-Key.
func decodeRun(body []byte, h http.Header) (api.RunRequest, error) {
	var req api.RunRequest
	var env stringMap
	var answers stdin
	err := decode(body, []field{
		{name: "code", want: "a string", into: &req.Code, must: true},
		{name: "language", want: "a string", into: &req.Language},
		{name: "context", want: "a string", into: &req.Context},
		{name: "timeoutMs", want: "an integer", into: &req.TimeoutMs},
		{name: "stream", want: "true or false", into: &req.Stream},
		{name: "interruptOnDisconnect", want: "true or false", into: &req.InterruptOnDisconnect},
		{name: "idempotencyKey", want: "a string", into: &req.IdempotencyKey},
		{name: "waitMs", want: "an integer", into: &req.WaitMs},
		{name: "ifGeneration", want: "an integer", into: &req.IfGeneration},
		{name: "env", want: "an object of strings", into: &env},
		{name: "cwd", want: "a string", into: &req.Cwd},
		{name: "stdin", want: `"live" or an array of strings`, into: &answers},
	})
	if err != nil {
		return req, err
	}
	req.Env, req.Stdin = env, answers.sent
	for _, v := range []struct {
		name string
		ms   *int64
		hint string
	}{
		{"timeoutMs", req.TimeoutMs, "with timeoutMs 0 there is no deadline"},
		{"waitMs", req.WaitMs, "without waitMs the answer comes at the cell's end"},
	} {
		if v.ms != nil && (*v.ms < 0 || *v.ms > maxMs) {
			return req, api.Errorf(api.CodeInvalidRequest, "%s must be from 0 to %d, not %d", v.name, maxMs, *v.ms).
				WithHint("send milliseconds; %s", v.hint)
		}
	}
	for _, key := range h.Values(keyHeader) {
		if key == "" {
			continue
		}
		if req.IdempotencyKey != "" && req.IdempotencyKey != key {
			return req, api.Errorf(api.CodeInvalidRequest, "the header %s and idempotencyKey differ", keyHeader).WithHint("send one of them")
		}
		req.IdempotencyKey = key
	}
	return req, nil
}
