package zmtp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// maxConns is how many connections a bound socket has at most, those that have not
// shaken hands yet among them. A kernel has a handful of clients.
const maxConns = 64

// binding is what all bound sockets have: it listens, and has one goroutine a
// connection, which shakes hands and then serves it.
type binding struct {
	typ   Type
	o     Options
	l     net.Listener
	serve func(*Conn) // until the connection ends; the binding closes it

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// listen binds an address. Of a Unix socket that nobody listens on any more only the
// file is left; it is replaced, as libzmq does.
func (b *binding) listen(network, address string) error {
	if network != "unix" && network != "tcp" {
		return fmt.Errorf("zmtp: bind %s to %s: unknown network %q, want \"unix\" or \"tcp\"", b.typ, address, network)
	}
	if network == "unix" {
		if fi, err := os.Lstat(address); err == nil && fi.Mode().Type() == os.ModeSocket {
			_ = os.Remove(address)
		}
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return fmt.Errorf("zmtp: bind %s: %w", b.typ, err)
	}
	b.l, b.conns = l, make(map[net.Conn]bool)
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.wg.Add(1)
	go b.accept()
	return nil
}

func (b *binding) accept() {
	defer b.wg.Done()
	for {
		nc, err := b.l.Accept()
		if err != nil {
			if b.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			// No descriptors are left, or the peer is gone again: neither is for good.
			select {
			case <-time.After(10 * time.Millisecond):
			case <-b.ctx.Done():
				return
			}
			continue
		}
		b.mu.Lock()
		ok := b.ctx.Err() == nil && len(b.conns) < maxConns
		if ok {
			b.conns[nc] = true
			b.wg.Add(1)
		}
		b.mu.Unlock()
		if !ok {
			nc.Close()
			continue
		}
		go func() {
			defer b.wg.Done()
			b.greet(nc)
			nc.Close()
			b.mu.Lock()
			delete(b.conns, nc)
			b.mu.Unlock()
		}()
	}
}

// greet shakes hands within a bound, and serves.
func (b *binding) greet(nc net.Conn) {
	c := newConn(nc, b.typ, b.o)
	bound := time.AfterFunc(or(b.o.HandshakeTimeout, defaultTimeout), func() { nc.Close() })
	err := c.handshake(nil)
	if !bound.Stop() || err != nil {
		return
	}
	b.serve(c)
}

// close ends the listener and all connections, and waits for their goroutines.
func (b *binding) close() {
	b.cancel()
	b.l.Close()
	b.mu.Lock()
	for nc := range b.conns {
		nc.Close()
	}
	b.mu.Unlock()
	b.wg.Wait()
}

// ErrNoPeer is SendTo's answer where no peer of that identity is connected.
var ErrNoPeer = errors.New("zmtp: no peer with this identity is connected")

// Socket is a bound ROUTER or REP. Its methods can be called from any goroutine.
type Socket struct {
	binding
	handle func(peer []byte, frames []*Frame)

	mu    sync.Mutex
	peers map[string]*Conn
	count uint32
}

// Bind makes a socket (Router or Rep) that listens at a path (network "unix") or a
// host:port ("tcp"), and gives the messages of all peers to handle, each in its
// peer's own goroutine: while handle doesn't return, nothing more is read of that
// peer. handle closes the frames. peer is the identity that the peer gave, or one made
// up that begins with a zero byte; of two peers with the same the newer counts, since
// the older is one that has gone without saying so. The caller closes the Socket.
// Options.Identity is of no use here.
func Bind(network, address string, t Type, o Options, handle func(peer []byte, frames []*Frame)) (*Socket, error) {
	if t != Router && t != Rep {
		return nil, fmt.Errorf("zmtp: can't bind a %s here, want Router or Rep", t)
	}
	s := &Socket{binding: binding{typ: t, o: o}, handle: handle, peers: make(map[string]*Conn)}
	s.serve = s.receive
	if err := s.listen(network, address); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Socket) receive(c *Conn) {
	s.mu.Lock()
	peer := c.peer
	if len(peer) == 0 {
		s.count++
		peer = []byte{0, byte(s.count >> 24), byte(s.count >> 16), byte(s.count >> 8), byte(s.count)}
	}
	s.peers[string(peer)] = c
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		if s.peers[string(peer)] == c {
			delete(s.peers, string(peer))
		}
		s.mu.Unlock()
	}()
	for {
		frames, err := c.Recv()
		if lost := (*SpillError)(nil); errors.As(err, &lost) {
			continue
		}
		if err != nil {
			return
		}
		s.handle(peer, frames)
	}
}

// Connected tells whether a peer of that identity is connected.
func (s *Socket) Connected(peer []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peers[string(peer)] != nil
}

// SendTo sends a message to a peer. One that takes nothing for Options.WriteTimeout is
// given up.
func (s *Socket) SendTo(peer []byte, frames ...[]byte) error {
	s.mu.Lock()
	c := s.peers[string(peer)]
	s.mu.Unlock()
	if c == nil {
		return ErrNoPeer
	}
	err := c.Send(frames...)
	if err != nil {
		_ = c.Close() // part of a message may have gone out: its receiver ends too
	}
	return err
}

// Close ends the socket and all its connections, and waits until handle is not
// running any more. It can be called twice.
func (s *Socket) Close() { s.close() }
