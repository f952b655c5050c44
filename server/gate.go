package server

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

const (
	// spareConnections is how many connections past the bound are kept, each for one
	// question of health or metrics.
	spareConnections = 32
	// maxRefusals bounds how many refused peers are being told so at once; those past
	// it are just closed.
	maxRefusals = 16
	// refusalTime and refusalBytes bound how long a refused peer is given to read its
	// answer, and what it may still send.
	refusalTime  = time.Second
	refusalBytes = 64 << 10
)

// gate is a Listener as net/http sees it: it lets in whom the listener allows, and no more
// than the bound.
type gate struct {
	s        *Server
	l        *Listener
	refusing chan struct{}
	closed   atomic.Bool
	warned   time.Time // when a refusal was last logged as a warning; Accept's own

	mu    sync.Mutex
	conns map[*conn]struct{}
	n     int64 // connections so far, to tell the older from the newer
}

func newGate(s *Server, l *Listener) *gate {
	return &gate{s: s, l: l, refusing: make(chan struct{}, maxRefusals), conns: map[*conn]struct{}{}}
}

func (g *gate) Addr() net.Addr { return g.l.Addr() }

func (g *gate) Close() error {
	if g.closed.Swap(true) {
		return nil
	}
	return g.l.Close()
}

// closeNew closes the connections that have not sent a byte yet.
func (g *gate) closeNew() {
	g.mu.Lock()
	var fresh []*conn
	for c := range g.conns {
		if c.is(http.StateNew) {
			fresh = append(fresh, c)
		}
	}
	g.mu.Unlock()
	for _, c := range fresh {
		c.Close()
	}
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conns)
}

// Accept returns the next connection that may come in. An accept that fails (no
// file descriptors left, a vsock reset by a restore of the VM) is tried again: an
// agent that stops listening can't be reached by anyone who would mend it.
func (g *gate) Accept() (net.Conn, error) {
	delay := 5 * time.Millisecond
	for {
		nc, err := g.l.Accept()
		if err != nil {
			if g.closed.Load() {
				return nil, net.ErrClosed
			}
			g.s.log.Error("accept failed; trying again", "listener", g.l.String(), "error", err)
			select {
			case <-time.After(delay):
			case <-g.s.ctx.Done():
				return nil, net.ErrClosed
			}
			delay = min(2*delay, time.Second)
			continue
		}
		delay = 5 * time.Millisecond
		if g.l.check != nil {
			if err := g.l.check(nc); err != nil {
				g.logRefusal(err)
				g.s.counts.refused.Add(1, g.l.kind(), refusedPeer)
				g.refuse(nc, api.Errorf(api.CodeUnauthorized, "%v", err).WithHint("call as one who may; --allow-uid and --vsock-allow-cid name more of them"))
				continue
			}
		}
		if c := g.admit(nc); c != nil {
			g.s.counts.accepted.Add(1, g.l.kind())
			return c, nil
		}
		g.s.counts.refused.Add(1, g.l.kind(), refusedLimit)
		g.refuse(nc, errTooMany(g.s.o.MaxConnections))
	}
}

// logRefusal warns once a minute: a cell that dials in a loop must not fill the log.
func (g *gate) logRefusal(reason error) {
	level := slog.LevelDebug
	if time.Since(g.warned) > time.Minute {
		level, g.warned = slog.LevelWarn, time.Now()
	}
	// The reason is the gate's own words: a uid or a CID.
	g.s.log.Log(g.s.ctx, level, "a peer was refused", "listener", g.l.String(), "reason", reason.Error())
}

func errTooMany(limit int) *api.Error {
	return api.Errorf(api.CodeBusy, "there are %d connections already", limit).
		WithHint("close some, or raise --max-connections; %s is still answered", healthPath)
}

// admit makes room for a connection if it can: the oldest that has not shown its
// token yet goes first (a cell can open any number of those on loopback), then the oldest
// that is idle between two requests. It returns nil where there is no room at all.
func (g *gate) admit(nc net.Conn) *conn {
	g.mu.Lock()
	g.n++
	c := &conn{Conn: nc, gate: g, n: g.n}
	c.authorized.Store(!g.l.token)
	var victim *conn
	if len(g.conns) >= g.s.o.MaxConnections {
		if victim = g.victim(); victim != nil {
			delete(g.conns, victim)
		} else if c.spare = true; len(g.conns) >= g.s.o.MaxConnections+spareConnections {
			c = nil
		}
	}
	if c != nil {
		g.conns[c] = struct{}{}
	}
	g.mu.Unlock()
	if victim != nil {
		victim.Close()
	}
	return c
}

func (g *gate) victim() *conn {
	var unknown, idle *conn
	for c := range g.conns {
		switch {
		case !c.authorized.Load():
			if unknown == nil || c.n < unknown.n {
				unknown = c
			}
		case c.is(http.StateIdle):
			if idle == nil || c.n < idle.n {
				idle = c
			}
		}
	}
	if unknown != nil {
		return unknown
	}
	return idle
}

// refuse tells a peer why it may not come in, without reading what it asks.
func (g *gate) refuse(nc net.Conn, e *api.Error) {
	select {
	case g.refusing <- struct{}{}:
	default:
		nc.Close()
		return
	}
	g.s.work.Add(1) // Accept runs in a Serve loop, which counts as work itself
	go func() {
		defer g.s.work.Done()
		defer func() { <-g.refusing }()
		defer nc.Close()
		_ = nc.SetDeadline(time.Now().Add(refusalTime))
		_, _ = nc.Write(refusal(e))
		// Closing with bytes unread would reset the connection, and the answer with it.
		if w, ok := nc.(closeWriter); ok && w.CloseWrite() == nil {
			_, _ = io.CopyN(io.Discard, nc, refusalBytes)
		}
	}()
}

type closeWriter interface{ CloseWrite() error }

// conn is an admitted connection.
type conn struct {
	net.Conn
	gate       *gate
	n          int64
	spare      bool         // past the bound: for health only
	authorized atomic.Bool  // its peer has shown the token, or needs none
	serving    atomic.Bool  // from a handler's begin until all of its answer is written
	state      atomic.Int32 // http.ConnState
}

type connKey struct{}

func connOf(r *http.Request) *conn { return r.Context().Value(connKey{}).(*conn) }

func peerOf(r *http.Request) string {
	c := connOf(r)
	return c.gate.l.String() + " " + c.RemoteAddr().String()
}

func (c *conn) is(state http.ConnState) bool { return c.state.Load() == int32(state) }

// writeChunk is how much must go out within Options.Stall for a peer to count as reading.
const writeChunk = 64 << 10

// Write ends with an error once the peer has taken nothing for Options.Stall. What
// net/http itself refuses is put as the API's errors are.
func (c *conn) Write(b []byte) (int, error) {
	if !c.serving.Load() {
		if r := ownRefusal(b); r != nil {
			_, err := c.write(r)
			return len(b), err
		}
	}
	return c.write(b)
}

func (c *conn) write(b []byte) (int, error) {
	n := 0
	for {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(c.gate.s.o.Stall)); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(b[n:min(len(b), n+writeChunk)])
		if n += m; err != nil || n == len(b) {
			return n, err
		}
	}
}

// CloseWrite is what net/http ends a refused connection with.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(closeWriter); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *conn) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.conns, c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}
