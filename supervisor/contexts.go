package supervisor

import (
	"context"
	"encoding/json"
	"regexp"
	"sort"
	"strings"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// newContext makes a session; the caller holds creating.
func (m *Manager) newContext(id, lang, cwd string, env map[string]string) (*session, error) {
	ctx, cancel := context.WithTimeout(context.Background(), m.o.StartTimeout)
	defer cancel()
	launch, err := m.catalogue.Launch(ctx, lang)
	if err != nil {
		// The session installs what can be installed: cells wait for that in its queue.
		if launch, err = m.toInstall(ctx, lang, err); err != nil {
			return nil, err
		}
	}
	if cwd == "" {
		cwd = m.o.Workspace
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopping {
		return nil, errStopping()
	}
	if len(m.sessions) >= m.o.MaxContexts {
		return nil, api.Errorf(api.CodeBusy, "there are %d contexts already", len(m.sessions)).WithHint("delete one that is not needed")
	}
	s := newSession(m, id, launch.Language, launch, cwd, env)
	m.sessions[id] = s
	return s, nil
}

func (m *Manager) session(id string) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[id]
}

// live is a session that is not being deleted.
func (m *Manager) live(id string) (*session, error) {
	if s := m.session(id); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.shut {
			return s, nil
		}
	}
	return nil, errNoContext(id)
}

// forget is the end of a session.
func (m *Manager) forget(s *session) {
	if s.deleted {
		if err := m.store.Drop(s.id); err != nil {
			s.log.Warn("removing a context's files", "error", err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions[s.id] == s {
		delete(m.sessions, s.id)
	}
}

// Contexts lists the contexts by id.
func (m *Manager) Contexts() []api.Context {
	m.mu.Lock()
	all := make([]*session, 0, len(m.sessions))
	for _, s := range m.sessions {
		all = append(all, s)
	}
	m.mu.Unlock()
	out := make([]api.Context, len(all))
	for i, s := range all {
		out[i] = s.info()
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// Context is one of them.
func (m *Manager) Context(id string) (api.Context, error) {
	s, err := m.live(id)
	if err != nil {
		return api.Context{}, err
	}
	return s.info(), nil
}

// CreateContext makes a context and returns once its kernel is ready.
func (m *Manager) CreateContext(ctx context.Context, req api.ContextRequest) (api.Context, error) {
	if req.ID == "" {
		req.ID = "c-" + strings.ToLower(newID(""))[16:]
	}
	if len(req.ID) > maxContextID || !contextID.MatchString(req.ID) {
		return api.Context{}, api.Errorf(api.CodeInvalidRequest, "%q is no context id", req.ID).
			WithHint("use a-z, 0-9 and -, at most 63 of them, not beginning with -")
	}
	req.Language = strings.ToLower(req.Language)
	own := m.catalogue.Has(req.ID) // a language's own name is its own context's
	switch {
	case own && req.Language == "":
		req.Language = req.ID
	case own && contextName(req.Language) != req.ID:
		return api.Context{}, api.Errorf(api.CodeInvalidRequest, "context %s is %s's own, not %s's", req.ID, req.ID, req.Language).
			WithHint("leave the language out, or choose another id")
	case req.Language == "":
		req.Language = "python"
	}
	if err := checkEnv(req.Env); err != nil {
		return api.Context{}, err
	}
	if err := m.checkCwd(&req.Cwd); err != nil {
		return api.Context{}, err
	}
	s, err := m.create(req)
	if err != nil {
		return api.Context{}, err
	}
	return m.whenReady(ctx, s, nil)
}

func (m *Manager) create(req api.ContextRequest) (*session, error) {
	m.creating.Lock()
	defer m.creating.Unlock()
	for {
		s := m.session(req.ID)
		if s == nil {
			return m.newContext(req.ID, req.Language, req.Cwd, req.Env)
		}
		if _, err := m.live(req.ID); err == nil {
			return nil, api.Errorf(api.CodeConflict, "there is a context %s already", req.ID).WithHint("delete it first, or choose another id")
		}
		<-s.gone
	}
}

// whenReady returns the context once it has a kernel. before, if there is one, is done
// first, on the session's goroutine.
func (m *Manager) whenReady(ctx context.Context, s *session, before func()) (api.Context, error) {
	w := make(chan error, 1)
	if !s.do(func() {
		if before != nil {
			before()
		}
		s.ready(w, api.RequestID(ctx))
	}) {
		return api.Context{}, errNoContext(s.id)
	}
	select {
	case err := <-w:
		if err != nil {
			return api.Context{}, asAPI(err)
		}
		return s.info(), nil
	case <-ctx.Done():
		return api.Context{}, api.Errorf(api.CodeUnavailable, "the kernel is still starting").WithHint("ask for the context again")
	}
}

// Restart gives a context a new kernel.
func (m *Manager) Restart(ctx context.Context, id string) (api.Context, error) {
	s, err := m.live(id)
	if err != nil {
		return api.Context{}, err
	}
	return m.whenReady(ctx, s, func() {
		s.log.Info("the context is restarted", "request", api.RequestID(ctx), "generation", s.gen)
		s.stopKernel(&api.Lost{Reason: api.LostRestart, Message: "the context was restarted"},
			"ContextRestarted", "the context was restarted before the cell ran")
	})
}

// Interrupt stops the context's running cell; false when none runs.
func (m *Manager) Interrupt(ctx context.Context, id string) (bool, error) {
	s, err := m.live(id)
	if err != nil {
		return false, err
	}
	running := false
	if !s.do(func() {
		running = s.cur != nil
		s.log.Debug("the context is interrupted", "request", api.RequestID(ctx), "generation", s.gen)
		s.stopCell(whyInterrupt)
	}) {
		return false, errNoContext(id)
	}
	return running, nil
}

// Delete ends a context; its id is free when Delete returns.
func (m *Manager) Delete(ctx context.Context, id string) error {
	s, err := m.live(id)
	if err != nil {
		return err
	}
	if !s.do(func() {
		s.deleted = true
		s.log.Info("the context is deleted", "request", api.RequestID(ctx), "generation", s.gen)
		s.close()
		s.stopKernel(&api.Lost{Reason: api.LostDeleted, Message: "the context was deleted"},
			"ContextDeleted", "the context was deleted before the cell ran")
	}) {
		return errNoContext(id)
	}
	<-s.gone
	return nil
}

// Ask passes a complete_request, inspect_request or is_complete_request on, and the
// content of the kernel's reply back.
func (m *Manager) Ask(ctx context.Context, id, msgType string, req api.CompleteRequest) (json.RawMessage, error) {
	s, err := m.live(id)
	if err != nil {
		return nil, err
	}
	if _, err := m.whenReady(ctx, s, nil); err != nil {
		return nil, err
	}
	content := map[string]any{"code": req.Code}
	if msgType != "is_complete_request" {
		cursor := len([]rune(req.Code))
		if req.Cursor != nil {
			if *req.Cursor < 0 || *req.Cursor > cursor {
				return nil, api.Errorf(api.CodeInvalidRequest, "cursor: %d is outside the code's %d characters", *req.Cursor, cursor).
					WithHint("count characters (code points), not bytes or UTF-16")
			}
			cursor = *req.Cursor
		}
		content["cursor_pos"] = cursor
	}
	if msgType == "inspect_request" {
		content["detail_level"] = req.Detail
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	ch := make(chan json.RawMessage, 1)
	var msgID string
	if !s.do(func() { msgID = s.ask(msgType, content, ch) }) {
		return nil, errNoContext(id)
	}
	select {
	case raw := <-ch:
		if raw == nil {
			return nil, errNoAnswer()
		}
		return raw, nil
	case <-ctx.Done():
		s.do(func() { delete(s.asks, msgID) })
		return nil, api.Errorf(api.CodeUnavailable, "the kernel did not answer in time: it answers between cells").WithHint("ask again when the context is idle")
	}
}

func errNoAnswer() *api.Error {
	return api.Errorf(api.CodeUnavailable, "the kernel gave no answer").WithHint("ask again")
}

const askWithin = 10 * time.Second

// A bound in the expression itself would take a third of a millisecond of each start.
const maxContextID = 63

var contextID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// contextName is the id of a language's own context: its name, made fit.
func contextName(lang string) string {
	b := []byte(strings.ToLower(lang))
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			b[i] = '-'
		}
	}
	return strings.TrimLeft(string(b[:min(len(b), maxContextID)]), "-")
}
