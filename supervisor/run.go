package supervisor

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/protocol/api"
)

// Run is an execution that a request started or found. Leave must be called once:
// gone says that the client went away, rather than got its answer.
type Run struct {
	*execution.Execution
	Leave    func(gone bool)
	Existing bool
}

// Run takes a cell: it is queued, and its execution is there, when Run returns.
func (m *Manager) Run(req api.RunRequest) (*Run, error) {
	if err := checkRun(req); err != nil {
		return nil, err
	}
	var body [sha256.Size]byte
	if req.IdempotencyKey != "" {
		body = bodyOf(req)
		m.creating.Lock() // so that of two requests with a key one waits for the other
		defer m.creating.Unlock()
		m.mu.Lock()
		r := m.keys[req.IdempotencyKey]
		var e *execution.Execution
		if r != nil {
			e = r.e
		}
		m.mu.Unlock()
		if r != nil {
			if r.body != body {
				return nil, api.Errorf(api.CodeConflict, "the idempotency key was used with another body").
					WithHint("use a new key for a new cell")
			}
			if e == nil {
				return nil, api.Errorf(api.CodeGone, "the cell of this idempotency key has run, and its execution is no longer kept").
					WithHint("use a new key to run it again")
			}
			m.log.Debug("a request attached by its key", "request", req.RequestID, "execution", e.ID(), "context", e.ContextID())
			return &Run{Execution: e, Leave: e.Attach(), Existing: true}, nil
		}
	}
	for {
		s, err := m.sessionFor(req)
		if err != nil {
			return nil, err
		}
		run, err := m.queue(s, req, body)
		if !errors.Is(err, errShut) {
			return run, err
		}
		<-s.gone
	}
}

func (m *Manager) queue(s *session, req api.RunRequest, body [sha256.Size]byte) (*Run, error) {
	if (req.Env != nil || req.Cwd != "") && !s.cellEnv() {
		return nil, api.Errorf(api.CodeUnsupported, "the kernel of context %s can't set env or cwd for a single cell", s.id).
			WithHint("set them when the context is created, or in the code")
	}
	if g := req.IfGeneration; g != nil {
		if have, alive := s.generation(); have != *g || !alive {
			return nil, errGeneration(s.id, *g, have, !alive)
		}
	}
	disconnect := req.IdempotencyKey == ""
	if req.InterruptOnDisconnect != nil {
		disconnect = *req.InterruptOnDisconnect
	}
	e := execution.New(execution.Options{ID: newID("e_"), RequestID: req.RequestID, ContextID: s.id, Language: s.info().Language,
		Limits: m.o.Limits, Store: m.store, Stdin: req.Stdin, InterruptOnDisconnect: disconnect,
		Grace: m.o.DisconnectGrace, Wrote: m.counts.wrote, Ending: m.counts.ended, Abandoned: func(e *execution.Execution) { _, _ = m.InterruptExecution(e.ID()) }})
	r := &record{e: e, s: s, key: req.IdempotencyKey, body: body, code: int64(len(req.Code))}
	m.mu.Lock()
	if m.stopping {
		m.mu.Unlock()
		return nil, errStopping()
	}
	if m.code > 0 && m.code+r.code > m.o.MaxCode {
		m.mu.Unlock()
		return nil, api.Errorf(api.CodeBusy, "the cells that wait or run have %d bytes of code already", m.code).
			WithHint("wait for some to end, or let the cell read a file")
	}
	m.execs[e.ID()] = r
	if r.key != "" {
		m.keys[r.key] = r
	}
	m.running++
	m.code += r.code
	m.mu.Unlock()
	leave := e.Attach()
	if err := s.enqueue(&task{e: e, req: req}); err != nil {
		m.mu.Lock()
		m.running--
		m.code -= r.code
		delete(m.execs, e.ID())
		m.removeKey(r)
		m.mu.Unlock()
		e.Close()
		return nil, err
	}
	m.counts.code.Add(float64(r.code))
	return &Run{Execution: e, Leave: leave}, nil
}

// sessionFor finds the context that a cell runs in; a language's own is made.
func (m *Manager) sessionFor(req api.RunRequest) (*session, error) {
	lang, id := strings.ToLower(req.Language), req.Context // kernelspecs are known in lower case too
	if id == "" {
		if lang == "" {
			lang = "python"
		}
		id = contextName(lang)
	}
	if s := m.session(id); s != nil {
		if have := s.info().Language; lang != "" && lang != have {
			return nil, api.Errorf(api.CodeInvalidRequest, "context %s is %s, not %s", id, have, lang).
				WithHint("leave the language out, or name another context")
		}
		return s, nil
	}
	if req.Context != "" {
		own := lang
		if own == "" {
			own = id
		}
		if contextName(own) != id || !m.catalogue.Has(own) {
			if lang != "" && m.catalogue.Has(id) {
				return nil, api.Errorf(api.CodeInvalidRequest, "context %s is %s's own, not %s's", id, id, lang).
					WithHint("leave the language out, or name another context")
			}
			return nil, errNoContext(id)
		}
		lang = own
	}
	if req.IfGeneration != nil {
		return nil, errGeneration(id, *req.IfGeneration, 0, true)
	}
	if req.IdempotencyKey == "" {
		m.creating.Lock()
		defer m.creating.Unlock()
	}
	if s := m.session(id); s != nil {
		return s, nil
	}
	return m.newContext(id, lang, "", nil)
}

// newID makes an id that sorts by time: 48 bits of milliseconds and 80 of chance, in
// Crockford's base 32 (a ULID).
func newID(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	var t [8]byte
	binary.BigEndian.PutUint64(t[:], uint64(time.Now().UnixMilli()))
	copy(b[:6], t[2:])
	return prefix + base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding).EncodeToString(b[:])
}
