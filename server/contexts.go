package server

import (
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/cellard/cellard/protocol/api"
)

// contexts is GET /v1/interpreter/contexts.
func (s *Server) contexts(c *call) error {
	list := s.o.Manager.Contexts()
	if list == nil {
		list = []api.Context{}
	}
	return c.reply(http.StatusOK, api.ContextList{Data: list})
}

// createContext is POST /v1/interpreter/contexts.
func (s *Server) createContext(c *call) error {
	var req api.ContextRequest
	var env stringMap
	err := decode(c.body, []field{
		{name: "id", want: "a string", into: &req.ID},
		{name: "language", want: "a string", into: &req.Language},
		{name: "cwd", want: "a string", into: &req.Cwd},
		{name: "env", want: "an object of strings", into: &env},
	})
	if err != nil {
		return err
	}
	req.Env = env
	x, err := s.o.Manager.CreateContext(c.r.Context(), req)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, x)
}

// context is GET /v1/interpreter/contexts/{id}.
func (s *Server) context(c *call) error {
	x, err := s.o.Manager.Context(c.id)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, x)
}

// deleteContext is DELETE /v1/interpreter/contexts/{id}.
func (s *Server) deleteContext(c *call) error {
	if err := s.o.Manager.Delete(c.r.Context(), c.id); err != nil {
		return err
	}
	return c.reply(http.StatusOK, struct {
		Deleted bool `json:"deleted"`
	}{true})
}

// restart is POST /v1/interpreter/contexts/{id}:restart.
func (s *Server) restart(c *call) error {
	x, err := s.o.Manager.Restart(c.r.Context(), c.id)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, x)
}

// interruptContext is POST /v1/interpreter/contexts/{id}:interrupt.
func (s *Server) interruptContext(c *call) error {
	done, err := s.o.Manager.Interrupt(c.r.Context(), c.id)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, interrupted{done})
}

// complete, inspect and isComplete pass on the kernel's own answers to the Jupyter
// requests of these names.
func (s *Server) complete(c *call) error   { return s.ask(c, "complete_request") }
func (s *Server) inspect(c *call) error    { return s.ask(c, "inspect_request") }
func (s *Server) isComplete(c *call) error { return s.ask(c, "is_complete_request") }

func (s *Server) ask(c *call, msgType string) error {
	var req api.CompleteRequest
	err := decode(c.body, []field{
		{name: "code", want: "a string", into: &req.Code, must: true},
		{name: "cursor", want: "an integer", into: &req.Cursor},
		{name: "detail", want: "an integer", into: &req.Detail},
	})
	if err != nil {
		return err
	}
	if req.Cursor != nil && *req.Cursor < 0 {
		return api.Errorf(api.CodeInvalidRequest, "cursor must not be negative").WithHint("count in characters from the code's beginning; without it, its end is meant")
	}
	var reply json.RawMessage
	if reply, err = s.o.Manager.Ask(c.r.Context(), c.id, msgType, req); err != nil {
		return err
	}
	return c.reply(http.StatusOK, reply)
}

// variables is GET /v1/interpreter/contexts/{id}/variables.
func (s *Server) variables(c *call) error {
	list, err := s.o.Manager.Variables(c.r.Context(), c.id)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, list)
}

// notebook is GET /v1/interpreter/contexts/{id}/notebook.
func (s *Server) notebook(c *call) error {
	f, err := s.o.Manager.Notebook(c.r.Context(), c.id)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/x-ipynb+json")
	h.Set("Content-Disposition", `attachment; filename="`+c.id+`.ipynb"`) // an id needs no escapes
	h.Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	c.w.WriteHeader(http.StatusOK)
	_, err = io.Copy(c.w, f)
	return err // what has begun is cut off
}

// unsupported answers for what the API has and no language of this agent can do:
// :fork and :rollback.
func (s *Server) unsupported(c *call) error {
	x, err := s.o.Manager.Context(c.id)
	if err != nil {
		return err
	}
	what := path.Base(c.r.URL.Path) // ID:fork
	what = what[strings.IndexByte(what, ':')+1:]
	return api.Errorf(api.CodeUnsupported, "%s is not supported by this agent for %s", quote(what), x.Language).
		WithHint("do it in a cell, where the language can")
}
