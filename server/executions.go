package server

import (
	"net/http"
	"strconv"

	"github.com/cellard/cellard/protocol/api"
)

// execution is GET /v1/executions/{id}.
func (s *Server) execution(c *call) error {
	e, err := s.o.Manager.Execution(c.id)
	if err != nil {
		return err
	}
	c.w.Header().Set(ExecutionHeader, e.ID())
	return c.replyExecution(e)
}

// events is GET /v1/executions/{id}/events: attach to it, from ?after=SEQ on. It
// counts as a reader while it is there.
func (s *Server) events(c *call) error {
	var after int64
	if v := c.r.URL.Query().Get("after"); v != "" {
		var err error
		if after, err = strconv.ParseInt(v, 10, 64); err != nil || after < 0 {
			return api.Errorf(api.CodeInvalidRequest, "after must be the seq of an event, not %s", quote(v)).
				WithHint("send the seq of the last event that you have, or 0 for all of them")
		}
	}
	e, err := s.o.Manager.Execution(c.id)
	if err != nil {
		return err
	}
	if last := e.LastSeq(); after > last {
		return api.Errorf(api.CodeInvalidRequest, "after: %d is past the newest event, %d", after, last).
			WithHint("send the seq of the last event that you have; is it of this execution?")
	}
	c.w.Header().Set(ExecutionHeader, e.ID())
	if c.r.Method == http.MethodHead {
		c.w.Header().Set("Content-Type", "application/x-ndjson")
		return nil
	}
	leave := e.Attach()
	gone := true
	defer func() { leave(gone) }()
	gone, err = s.follow(c.r.Context(), c, e, after)
	return err
}

// interruptExecution is POST /v1/executions/{id}:interrupt.
func (s *Server) interruptExecution(c *call) error {
	done, err := s.o.Manager.InterruptExecution(c.id)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, interrupted{done})
}

type interrupted struct {
	Interrupted bool `json:"interrupted"`
}

// input is POST /v1/executions/{id}:input.
func (s *Server) input(c *call) error {
	var req api.InputRequest
	if err := decode(c.body, []field{{name: "value", want: "a string", into: &req.Value, must: true}}); err != nil {
		return err
	}
	if err := s.o.Manager.Input(c.id, req.Value); err != nil {
		return err
	}
	return c.reply(http.StatusOK, struct {
		Accepted bool `json:"accepted"`
	}{true})
}
