package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cellard/cellard/internal/logging"
	"github.com/cellard/cellard/internal/metrics"
	"github.com/cellard/cellard/protocol/api"
)

// call is one request: its body, read whole, and what its path names.
type call struct {
	w    *response
	r    *http.Request
	body []byte
	id   string
	file string
	// route is the pattern of its path, with its method; "none" where there is none.
	route string
	// requestID is the caller's, or the server's own; log has it.
	requestID string
	log       *slog.Logger
}

// ServeHTTP answers one request. A handler's error becomes the answer; a panic in
// one is logged, and costs this request alone.
func (s *Server) ServeHTTP(hw http.ResponseWriter, r *http.Request) {
	connOf(r).serving.Store(true)
	c := &call{route: "none", requestID: r.Header.Get(api.RequestIDHeader)}
	if !api.ValidRequestID(c.requestID) {
		c.requestID = rand.Text()
	}
	c.r = r.WithContext(api.WithRequestID(r.Context(), c.requestID))
	c.log = s.log.With("request", c.requestID)
	hw.Header().Set(api.RequestIDHeader, c.requestID)
	c.w = &response{ResponseWriter: hw, sent: s.counts.sent, answers: func(status int) { s.counts.requests.Add(1, c.route, strconv.Itoa(status)) }}
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			c.log.Error("a request's handler panicked", "route", c.route, "panic", logging.Content(fmt.Sprint(p)), "stack", string(debug.Stack()))
			s.fail(c, api.Errorf(api.CodeInternal, "the agent failed in answering this request").
				WithHint("its log has the details; please report it"))
		}
		if c.log.Enabled(r.Context(), slog.LevelDebug) {
			c.log.Debug("request", append(c.names(), "method", loggedMethod(r.Method), "route", c.route, "status", c.w.status,
				"bytes", c.w.bytes, "durationMs", time.Since(start).Milliseconds(), "peer", peerOf(r))...)
		}
	}()
	if err := s.answer(c); err != nil {
		s.fail(c, err)
	}
}

// names is what of a request's path and answer a log line has: the execution's id, or
// the context's. An id that could be none of the agent's is a stranger's text.
func (c *call) names() []any {
	if id := c.w.Header().Get(ExecutionHeader); id != "" {
		return []any{"execution", id}
	}
	if c.id == "" {
		return nil
	}
	key, value := "context", any(logging.Content(c.id))
	if strings.Contains(c.route, "/executions/") {
		key = "execution"
	}
	if len(c.id) <= maxLoggedID && loggedID.MatchString(c.id) {
		value = c.id
	}
	return []any{key, value}
}

// What looks like an id of ours is no secret of a caller's.
const maxLoggedID = 63

var loggedID = regexp.MustCompile(`^(e_[0-9A-Z]+|[a-z0-9][a-z0-9-]*)$`)

// loggedMethod is a method that some route takes: any token may come as one.
func loggedMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete:
		return method
	}
	return "other"
}

// answer is all that happens before a resource's own code: who asks, what for, and
// the body.
func (s *Server) answer(c *call) error {
	h := c.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	conn := connOf(c.r)
	// What is left unread of a body is read by net/http after the answer: a peer
	// that sends it by the drop must not hold the connection.
	c.bodyDeadline(s.o.HeaderTimeout)
	if conn.gate.l.token && !s.tokenIs(c.r) {
		h.Set("WWW-Authenticate", `Bearer realm="cellard"`)
		h.Set("Connection", "close")
		return api.Errorf(api.CodeUnauthorized, "a bearer token is missing or wrong").
			WithHint("send Authorization: Bearer TOKEN, with the token that the agent was started with")
	}
	conn.authorized.Store(true)
	if conn.spare {
		h.Set("Connection", "close")
		if c.r.URL.Path != healthPath && c.r.URL.Path != metricsPath {
			return errTooMany(s.o.MaxConnections)
		}
	}
	route, vars, refusal := s.find(c.r.Method, c.r.URL.EscapedPath())
	if refusal != nil {
		if allow := vars["allow"]; allow != "" {
			h.Set("Allow", allow)
		}
		return refusal
	}
	var err error
	c.route = route.method + " " + route.path
	if c.body, err = s.readBody(c); err != nil {
		return err
	}
	s.counts.received.Add(float64(len(c.body)))
	c.id, c.file = vars["id"], vars["file"]
	return route.handler(s, c)
}

// tokenIs compares in constant time; the hashes hide the token's length too.
func (s *Server) tokenIs(r *http.Request) bool {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(strings.TrimSpace(token))), sha256.Sum256([]byte(s.o.Token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1 && ok && strings.EqualFold(scheme, "Bearer") && s.o.Token != ""
}

// readBody reads the whole body. Only then does net/http watch for the client going
// away, which ends the request's context.
func (s *Server) readBody(c *call) ([]byte, error) {
	if e := c.r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, api.Errorf(api.CodeInvalidRequest, "a body with Content-Encoding %s is not taken", quote(e)).WithHint("send it as it is")
	}
	tooLarge := api.Errorf(api.CodeTooLarge, "the body is over %d bytes", s.o.MaxBody).
		WithHint("send less, or write a file into the sandbox and let the cell read it; the bound is a setting, --max-body")
	if c.r.ContentLength > s.o.MaxBody {
		c.w.Header().Set("Connection", "close")
		return nil, tooLarge
	}
	var b []byte
	if c.r.ContentLength != 0 {
		// The size that a client claims is not allocated before it has come.
		var err error
		share := &share{r: http.MaxBytesReader(c.w.ResponseWriter, c.r.Body, s.o.MaxBody), of: &s.reading, most: maxBodies * s.o.MaxBody}
		defer share.release()
		b, err = io.ReadAll(&patient{r: share, c: c, d: s.o.HeaderTimeout})
		var over *http.MaxBytesError
		switch {
		case errors.As(err, &over):
			return nil, tooLarge
		case errors.Is(err, errShare):
			c.w.Header().Set("Connection", "close")
			return nil, api.Errorf(api.CodeBusy, "the bodies that are being read have %d bytes already", share.most).
				WithHint("send it again when others have been read, or send fewer large bodies at once")
		case err != nil:
			c.w.Header().Set("Connection", "close")
			return nil, api.Errorf(api.CodeInvalidRequest, "the body broke off after %d bytes: %v", len(b), err).
				WithHint("send all of what Content-Length or the chunks announce, with no pause over %v", s.o.HeaderTimeout)
		}
	}
	c.bodyDeadline(0)
	return b, nil
}

// bodyDeadline bounds the next read of the body; 0 is no bound, which the watch for
// a client that goes away needs.
func (c *call) bodyDeadline(d time.Duration) {
	var t time.Time
	if d > 0 {
		t = time.Now().Add(d)
	}
	_ = http.NewResponseController(c.w.ResponseWriter).SetReadDeadline(t)
}

// maxBodies bounds what all bodies that are being read have together, in bodies of the
// largest size: each connection may send one.
const maxBodies = 4

// errShare tells that all bodies together are too large.
var errShare = errors.New("too many large bodies")

// share counts what is read of a body among all that are being read.
type share struct {
	r    io.Reader
	of   *atomic.Int64
	most int64
	took int64
}

func (s *share) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.took += int64(n)
	if s.of.Add(int64(n)) > s.most {
		return n, errShare
	}
	return n, err
}

// release takes it off the count. Once, when nothing more is read.
func (s *share) release() { s.of.Add(-s.took) }

// patient gives each read its own deadline.
type patient struct {
	r io.Reader
	c *call
	d time.Duration
}

func (p *patient) Read(b []byte) (int, error) {
	p.c.bodyDeadline(p.d)
	return p.r.Read(b)
}

// reply answers with JSON.
func (c *call) reply(status int, v any) error {
	b, err := api.Marshal(v)
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)+1))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(append(b, '\n')) // a client that is gone needs no answer
	return nil
}

// fail answers with an error. Where an answer has begun already it is cut off, so
// that the client sees that it is not whole.
func (s *Server) fail(c *call, err error) {
	if c.w.status != 0 {
		c.log.Debug("an answer broke off", append(c.names(), "route", c.route, "error", err)...)
		panic(http.ErrAbortHandler)
	}
	var e *api.Error
	if !errors.As(err, &e) {
		if c.r.Context().Err() == nil {
			c.log.Error("a request failed", append(c.names(), "route", c.route, "error", err)...)
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			e = api.Errorf(api.CodeUnavailable, "the request was given up: %v", err).WithHint("send it again; an idempotency key keeps a cell from running twice")
		} else {
			e = api.Errorf(api.CodeInternal, "%v", err).WithHint("the agent's log has the details; please report it")
		}
	}
	named := *e // others may be refused with the same one
	named.RequestID = c.requestID
	e = &named
	status := e.HTTPStatus()
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		c.w.Header().Set("Retry-After", "1")
	}
	if err := c.reply(status, api.ErrorBody{Error: e}); err != nil {
		panic(http.ErrAbortHandler)
	}
	if status == http.StatusRequestEntityTooLarge {
		// Most clients look for an answer only when they have sent all. net/http reads
		// nothing of the rest where the client asked for the connection's close, and
		// closing it then breaks off what they write, and the answer with it.
		_ = http.NewResponseController(c.w.ResponseWriter).Flush()
		_, _ = io.CopyN(io.Discard, &patient{r: c.r.Body, c: c, d: s.o.HeaderTimeout}, 4*s.o.MaxBody)
	}
}

// response remembers what was answered, and counts it: before the client has seen it, so
// that its next look at the metrics tells of it.
type response struct {
	http.ResponseWriter
	answers func(status int)
	sent    *metrics.Counter
	status  int
	bytes   int64
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) answer(status int) {
	if w.status == 0 {
		w.status = status
		w.answers(status)
	}
}

func (w *response) WriteHeader(status int) {
	w.answer(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(b []byte) (int, error) {
	w.answer(http.StatusOK)
	w.sent.Add(float64(len(b)))
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}
