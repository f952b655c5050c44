package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/internal/metrics"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/store"
	"github.com/cellard/cellard/supervisor"
)

// Manager is what the server serves: *supervisor.Manager. Errors that are or wrap
// an *api.Error go to the host as they are, any other as internal.
type Manager interface {
	Run(req api.RunRequest) (*supervisor.Run, error)
	Execution(id string) (*execution.Execution, error)
	InterruptExecution(id string) (bool, error)
	Input(id, value string) error
	Contexts() []api.Context
	Context(id string) (api.Context, error)
	CreateContext(ctx context.Context, req api.ContextRequest) (api.Context, error)
	Restart(ctx context.Context, id string) (api.Context, error)
	Interrupt(ctx context.Context, id string) (bool, error)
	Delete(ctx context.Context, id string) error
	Ask(ctx context.Context, id, msgType string, req api.CompleteRequest) (json.RawMessage, error)
	Variables(ctx context.Context, id string) (api.VariableList, error)
	Notebook(ctx context.Context, id string) (*supervisor.NotebookFile, error)
	Languages(ctx context.Context) []api.Language
	OpenResult(contextID, file string) (*store.File, error)
	Health() (running int, idle time.Duration)
	InstanceID() string
}

// Options are a Server's settings. A zero field stands for its default.
type Options struct {
	// Manager is required.
	Manager Manager
	// Version is the agent's, for health and metrics.
	Version string
	// Token is the bearer token of listeners that ask for one; with none set they
	// refuse every request.
	Token string
	// MaxBody bounds a request's body in bytes; 16 MiB.
	MaxBody int64
	// MaxConnections bounds the connections of each listener; 256.
	MaxConnections int
	// Ping is the silence after which a stream has a ping; 15 s.
	Ping time.Duration
	// Stall is how long a peer may take nothing of an answer before its connection
	// is closed; 5 min.
	Stall time.Duration
	// HeaderTimeout bounds the time for a request's headers, and between two pieces
	// of its body; 10 s.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection is kept between requests; 5 min, more than
	// HTTP clients keep theirs, so that it is the client that closes.
	IdleTimeout time.Duration
	Logger      *slog.Logger
	// Metrics is what GET /metrics writes, and gets the server's figures; nil for a
	// Registry of the server's own. It is for one Server.
	Metrics *metrics.Registry
}

// maxHeader bounds a request's headers in bytes; net/http adds 4 KiB to it.
const maxHeader = 60 << 10

// Server serves the host API. See the package's doc.
type Server struct {
	o       Options
	log     *slog.Logger
	http    *http.Server
	routes  []route
	counts  counts
	reading atomic.Int64 // bytes of the bodies that are being read
	started time.Time

	ctx    context.Context // ends when the server is closed: what is between two accepts
	cancel context.CancelFunc
	work   sync.WaitGroup // Serve loops, connections and refusals

	mu    sync.Mutex
	gates map[*gate]struct{}
}

// New makes a Server. The caller ends it with Shutdown or Close.
func New(o Options) *Server {
	o.MaxBody = cmp.Or(o.MaxBody, 16<<20)
	o.MaxConnections = cmp.Or(o.MaxConnections, 256)
	o.Ping = cmp.Or(o.Ping, 15*time.Second)
	o.Stall = cmp.Or(o.Stall, 5*time.Minute)
	o.HeaderTimeout = cmp.Or(o.HeaderTimeout, 10*time.Second)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 5*time.Minute)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o, log: o.Logger, started: time.Now(), routes: routes(), gates: map[*gate]struct{}{}}
	if s.o.Metrics == nil {
		s.o.Metrics = &metrics.Registry{}
	}
	s.counts = s.newCounts(s.o.Metrics)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:                      s,
		ReadHeaderTimeout:            o.HeaderTimeout,
		IdleTimeout:                  o.IdleTimeout,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true, // it would answer before the token is checked
		ErrorLog:                     slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		ConnState: s.connState,
	}
	return s
}

// Serve accepts connections of l until the server is shut down or closed, then
// returns nil; l is closed by then. A failing accept is logged and tried again.
func (s *Server) Serve(l *Listener) error {
	g := newGate(s, l)
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return l.Close()
	}
	s.gates[g] = struct{}{}
	for _, reason := range []string{refusedPeer, refusedLimit} {
		s.counts.refused.Add(0, l.kind(), reason) // a rate has no first one otherwise
	}
	s.work.Add(1)
	s.mu.Unlock()
	defer s.work.Done()
	defer func() {
		s.mu.Lock()
		delete(s.gates, g)
		s.mu.Unlock()
	}()
	err := s.http.Serve(g)
	if errors.Is(err, http.ErrServerClosed) || g.closed.Load() {
		return nil
	}
	return err
}

// Shutdown stops listening, waits for the requests that are being served, and returns
// when all is done. If ctx ends first, what is left is cut off, and the context's
// error returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	for g := range s.gates {
		_ = g.Close()
		g.closeNew() // http.Server would wait 5 s for their first request
	}
	s.mu.Unlock()
	err := s.http.Shutdown(ctx)
	return errors.Join(err, s.Close())
}

// Close closes the listeners and all connections, and returns when no goroutine of
// the server is left.
func (s *Server) Close() error {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	err := s.http.Close()
	s.work.Wait()
	return err
}

// connState follows what net/http does with a connection. StateNew is told by the Serve
// loop, which itself counts as work, so that the count is never raised from zero
// while Close waits for it.
func (s *Server) connState(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.work.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.work.Done()
	}
	if state == http.StateIdle {
		c.(*conn).serving.Store(false)
	}
	c.(*conn).state.Store(int32(state))
}
