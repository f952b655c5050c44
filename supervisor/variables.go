package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// Variables tells the variables that a context's kernel holds. It starts no kernel: without
// one there are none. It does not wait for a cell, since one may run for hours.
func (m *Manager) Variables(ctx context.Context, id string) (api.VariableList, error) {
	s, err := m.live(id)
	if err != nil {
		return api.VariableList{}, err
	}
	if s.info().State == api.ContextStarting {
		if _, err := m.whenReady(ctx, s, nil); err != nil {
			return api.VariableList{}, err
		}
	}
	var (
		list  = api.VariableList{Data: []api.Variable{}}
		ch    = make(chan json.RawMessage, 1)
		msgID string
		empty bool
	)
	if !s.do(func() {
		list.Generation = s.gen
		switch {
		case s.k == nil || !s.exitBy.IsZero():
			empty = true
		case !s.k.lists:
			err = api.Errorf(api.CodeUnsupported, "the kernel of context %s can't tell its variables", id).
				WithHint("ask for them in a cell, in the language's own way")
		case s.cur != nil:
			err = api.Errorf(api.CodeUnavailable, "context %s runs a cell: its variables can be told between cells", id).
				WithHint("ask again when the context is idle")
		default:
			msgID = s.ask("variables_request", struct{}{}, ch)
		}
	}) {
		return list, errNoContext(id)
	}
	if err != nil || empty {
		return list, err
	}
	// Not bounded by ctx: whoever asked may be gone, but the kernel is still seen to.
	bound := time.NewTimer(m.o.listWithin)
	defer bound.Stop()
	select {
	case raw := <-ch:
		if raw == nil {
			return list, errNoAnswer()
		}
		err := readVariables(raw, &list)
		return list, err
	case <-bound.C:
		s.do(func() { s.stopListing(msgID) })
		return list, api.Errorf(api.CodeUnavailable, "the kernel did not tell its variables within %v, and was interrupted", m.o.listWithin).
			WithHint("ask for them in a cell, or restart the context")
	}
}

// stopListing interrupts a kernel that takes too long over its variables, so that the next
// cell finds it idle.
func (s *session) stopListing(msgID string) {
	delete(s.asks, msgID)
	if s.k == nil || !s.exitBy.IsZero() || s.cur != nil && s.cur.busy {
		return
	}
	if err := s.k.interruptSelf(); err != nil {
		s.m.log.Warn("interrupting a kernel that lists variables", "context", s.id, "error", err)
	}
	if s.cur == nil {
		s.syncKernel()
	}
}

// readVariables takes what a variables_reply says, within bounds: it may be a stranger's.
func readVariables(raw json.RawMessage, list *api.VariableList) error {
	var reply struct {
		Status string           `json:"status"`
		Data   boundedVariables `json:"data"`
		Total  int              `json:"total"`
		EName  string           `json:"ename"`
		EValue string           `json:"evalue"`
	}
	if err := json.Unmarshal(raw, &reply); err != nil {
		return api.Errorf(api.CodeUnavailable, "the kernel's list of variables could not be read: %.200v", err).WithHint("ask for them in a cell")
	}
	if reply.Status != "ok" {
		return api.Errorf(api.CodeUnavailable, "the kernel could not tell its variables: %.200s: %.400s", reply.EName, reply.EValue).
			WithHint("ask again, or ask for them in a cell")
	}
	list.Data = append(list.Data, reply.Data...)
	list.Total = max(reply.Total, len(list.Data))
	return nil
}

// boundedVariables are the first of a JSON array.
type boundedVariables []api.Variable

const maxDimensions = 64

func (v *boundedVariables) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return err // null, or what is no list: none
	}
	for d.More() && len(*v) < api.MaxVariables {
		var one api.Variable
		if err := d.Decode(&one); err != nil {
			return err
		}
		one.Name, one.Type = cutText(one.Name, api.MaxVariableName), cutText(one.Type, api.MaxVariableName)
		one.Preview = cutText(one.Preview, api.MaxPreview)
		one.Shape = one.Shape[:min(len(one.Shape), maxDimensions)]
		*v = append(*v, one)
	}
	return nil
}

// cutText makes a kernel's text valid, and of at most so many bytes.
func cutText(s string, most int) string {
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}
